//! Tests frames and the upgrade against RFC 6455's own examples.

use super::*;

fn socket() -> WebSocket {
    let settings = Settings {
        host: "server:1".to_owned(),
        path: "/mqtt".to_owned(),
    };
    let mut made = WebSocket::new(settings);
    made.begin(&mut Vec::new()).unwrap();
    made.key = "dGhlIHNhbXBsZSBub25jZQ==".to_owned(); // RFC 6455, 1.3
    made
}

fn answer(accept: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
}

const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

#[test]
fn the_request_names_host_path_key_and_protocol() {
    let mut output = Vec::new();
    socket().begin(&mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    assert!(text.starts_with("GET /mqtt HTTP/1.1\r\nHost: server:1\r\n"));
    assert!(text.ends_with("Sec-WebSocket-Protocol: mqtt\r\n\r\n"));
}

#[test]
fn an_accepted_upgrade_opens_and_frames_may_come_in_any_pieces() {
    let mut bytes = answer(ACCEPT).into_bytes();
    bytes.extend_from_slice(b"\x02\x02ab\x89\x01p\x80\x01c"); // two fragments, with a ping between them
    bytes.extend_from_slice(&[0x82, 126, 1, 0]);
    bytes.extend_from_slice(&[7; 256]);
    for size in [1, 3, bytes.len()] {
        let (mut one, mut plain, mut output, mut opened) = (socket(), Vec::new(), Vec::new(), 0);
        for piece in bytes.chunks(size) {
            opened += u8::from(one.receive(piece, &mut plain, &mut output).unwrap());
        }
        assert_eq!(opened, 1);
        assert_eq!(plain, [b"abc".as_slice(), &[7; 256]].concat());
        assert_eq!(output[..2], [0x8a, 0x81], "the pong is masked");
        assert_eq!(output[2] ^ output[6], b'p');
    }
}

#[test]
fn what_is_refused_is_told_in_words() {
    let opened = |frame: &[u8]| [answer(ACCEPT).as_bytes(), frame].concat();
    for (bytes, why) in [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n".to_vec(), "403 Forbidden"),
        (answer("wrong").into_bytes(), "Sec-WebSocket-Accept is"),
        (vec![b'x'; 9000], "too long"),
        (opened(b"\x81\x01a"), "a text frame"),
        (opened(b"\x82\x81abcde"), "is masked"),
        (opened(b"\xc2\x01a"), "reserved bits"),
        (opened(b"\x09\x01a"), "invalid control frame"),
        (opened(b"\x83\x00"), "opcode 3"),
        (
            opened(b"\x88\x05\x03\xe9bye"),
            "closes the WebSocket: 1001 bye",
        ),
        (opened(b"\x88\x00"), "closes the WebSocket: no code"),
    ] {
        let error = socket().receive(&bytes, &mut Vec::new(), &mut Vec::new());
        assert!(error.clone().unwrap_err().contains(why), "{error:?}");
    }
}

#[test]
fn a_packet_of_any_length_is_one_masked_frame() {
    for (length, head) in [(125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
        let (content, mut output) = (vec![9; length], Vec::new());
        packet(&content, &mut output).unwrap();
        assert_eq!((output[0], output[1] & MASKED), (0x82, MASKED));
        assert_eq!(output.len(), head + 4 + length);
        let mask = output[head..head + 4].to_vec();
        assert_eq!(output[head + 4] ^ mask[0], 9);
    }
}
