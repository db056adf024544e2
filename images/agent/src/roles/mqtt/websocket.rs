//! Carries MQTT over WebSocket (RFC 6455; MQTT 5, 6): the request for the upgrade, the check of the answer,
//! and the frames of both directions. The bytes use the same socket, or the same TLS connection, as without
//! WebSocket.

use crate::os::Res;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, 1.3
const LONGEST_ANSWER: usize = 8192;
const LONGEST_CONTROL: u64 = 125; // RFC 6455, 5.5
// Opcodes (RFC 6455, 5.2).
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes(); // RFC 6455, 7.4.1

/// The settings of WebSocket in a client's `spec`.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// The value of the request's field Host.
    host: String,
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The broker has not answered the request for the upgrade.
    Asking,
    /// The next byte begins a frame.
    Head,
    /// The number of bytes of a data frame that follow.
    Data(u64),
}

/// The WebSocket of one client; `begin` starts each connection.
pub struct WebSocket {
    settings: Settings,
    key: String,
    state: State,
    /// The bytes of an incomplete answer, frame head or control frame.
    input: Vec<u8>,
}

fn random<const N: usize>() -> Res<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| "WebSocket: the kernel gives no random bytes".to_owned())?;
    Ok(bytes)
}

impl WebSocket {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            key: String::new(),
            state: State::Asking,
            input: Vec::new(),
        }
    }

    /// Begins a connection: appends the request for the upgrade to `output`, with a new key.
    pub fn begin(&mut self, output: &mut Vec<u8>) -> Res<()> {
        self.key = STANDARD.encode(random::<16>()?);
        (self.state, self.input) = (State::Asking, Vec::new());
        let Settings { host, path } = &self.settings;
        let key = &self.key;
        output.extend_from_slice(
            format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Protocol: mqtt\r\n\r\n"
            )
            .as_bytes(),
        );
        Ok(())
    }

    /// Reads received bytes: appends the content of data frames to `plain`, and answers to pings to `output`.
    /// Returns whether the upgrade was accepted in this call; an error if it was refused, the broker violates
    /// the protocol, or it closes the WebSocket.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        plain: &mut Vec<u8>,
        output: &mut Vec<u8>,
    ) -> Res<bool> {
        let mut opened = false;
        while !bytes.is_empty() {
            match self.state {
                State::Data(left) => {
                    let n = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    plain.extend_from_slice(&bytes[..n]);
                    bytes = &bytes[n..];
                    self.data(left - n as u64);
                }
                State::Asking => {
                    self.input.push(bytes[0]);
                    bytes = &bytes[1..];
                    if self.input.ends_with(b"\r\n\r\n") {
                        self.accepted()?;
                        (self.state, self.input) = (State::Head, Vec::new());
                        opened = true;
                    } else if self.input.len() > LONGEST_ANSWER {
                        return Err("WebSocket: the broker's answer is too long".to_owned());
                    }
                }
                State::Head => {
                    self.input.push(bytes[0]);
                    bytes = &bytes[1..];
                    self.head(output)?;
                }
            }
        }
        Ok(opened)
    }

    fn data(&mut self, left: u64) {
        self.state = if left == 0 {
            State::Head
        } else {
            State::Data(left)
        };
    }

    /// Checks the broker's answer to the request (RFC 6455, 4.1; MQTT 5, 6).
    fn accepted(&self) -> Res<()> {
        let answer = String::from_utf8_lossy(&self.input);
        let mut lines = answer.trim_end().split("\r\n");
        let status = lines.next().unwrap_or_default();
        if !status.starts_with("HTTP/1.1 101") {
            return Err(format!("WebSocket refused: {}", status.escape_default()));
        }
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let field = |name: &str| {
            let found = fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
            found.map_or("", |(_, value)| value.trim())
        };
        let digest = digest::digest(
            &digest::SHA1_FOR_LEGACY_USE_ONLY,
            format!("{}{GUID}", self.key).as_bytes(),
        );
        for (name, wanted, value) in [
            ("Upgrade", "websocket", field("Upgrade").to_lowercase()),
            (
                "Sec-WebSocket-Accept",
                &STANDARD.encode(digest),
                field("Sec-WebSocket-Accept").to_owned(),
            ),
            (
                "Sec-WebSocket-Protocol",
                "mqtt",
                field("Sec-WebSocket-Protocol").to_owned(),
            ),
        ] {
            if value != wanted {
                let value = value.escape_default();
                return Err(format!(
                    "WebSocket refused: {name} is \"{value}\", not \"{wanted}\""
                ));
            }
        }
        Ok(())
    }

    /// Handles the beginning of a frame in `input`, if it is complete; a control frame must be there as a
    /// whole.
    fn head(&mut self, output: &mut Vec<u8>) -> Res<()> {
        let Some((length, at)) = length(&self.input)? else {
            return Ok(());
        };
        let (first, opcode) = (self.input[0], self.input[0] & 0x0f);
        if first & 0x70 != 0 {
            return Err("WebSocket: a frame with reserved bits (RFC 6455, 5.2)".to_owned());
        }
        if opcode == CONTINUATION || opcode == BINARY {
            self.input.clear();
            self.data(length);
            return Ok(());
        }
        if opcode == TEXT {
            return Err("WebSocket: a text frame, and MQTT is binary (MQTT 5, 6.0)".to_owned());
        }
        if length > LONGEST_CONTROL || first & FINAL == 0 {
            return Err("WebSocket: an invalid control frame (RFC 6455, 5.5)".to_owned());
        }
        if self.input.len() < at + length as usize {
            return Ok(());
        }
        let payload = self.input.split_off(at);
        self.input.clear();
        match opcode {
            CLOSE => Err(closed(&payload)),
            PING => frame(PONG, &payload, output),
            PONG => Ok(()),
            _ => Err(format!("WebSocket: opcode {opcode} does not exist")),
        }
    }
}

/// Returns the length of a frame's payload and the length of its head; None if the head is incomplete, an
/// error if the frame is masked.
fn length(head: &[u8]) -> Res<Option<(u64, usize)>> {
    let Some(second) = head.get(1) else {
        return Ok(None);
    };
    if second & MASKED != 0 {
        return Err("WebSocket: a broker's frame is masked (RFC 6455, 5.1)".to_owned());
    }
    let at = match second {
        126 => 4,
        127 => 10,
        _ => return Ok(Some((u64::from(*second), 2))),
    };
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, b| sum << 8 | u64::from(*b));
    Ok(head.get(2..at).map(|bytes| (number(bytes), at)))
}

fn closed(payload: &[u8]) -> String {
    let code = payload
        .get(..2)
        .map(|code| u16::from_be_bytes([code[0], code[1]]));
    let code = code.map_or("no code".to_owned(), |code| code.to_string());
    let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default());
    format!(
        "the broker closes the WebSocket: {code} {}",
        reason.escape_default()
    )
    .trim_end()
    .to_owned()
}

/// Appends a data frame with one MQTT packet to `output`.
pub fn packet(content: &[u8], output: &mut Vec<u8>) -> Res<()> {
    frame(BINARY, content, output)
}

/// Appends a frame that ends the WebSocket to `output`.
pub fn close(output: &mut Vec<u8>) -> Res<()> {
    frame(CLOSE, &NORMAL, output)
}

/// Appends a masked frame (RFC 6455, 5.2 and 5.3) to `output`.
fn frame(opcode: u8, content: &[u8], output: &mut Vec<u8>) -> Res<()> {
    output.push(FINAL | opcode);
    match (u8::try_from(content.len()), u16::try_from(content.len())) {
        (Ok(length), _) if u64::from(length) <= LONGEST_CONTROL => output.push(MASKED | length),
        (_, Ok(length)) => {
            output.push(MASKED | 126);
            output.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            output.push(MASKED | 127);
            output.extend_from_slice(&(content.len() as u64).to_be_bytes());
        }
    }
    let mask = random::<4>()?;
    output.extend_from_slice(&mask);
    output.extend(
        content
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, key)| byte ^ key),
    );
    Ok(())
}

#[cfg(test)]
mod tests;
