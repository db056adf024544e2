//! Implements a client's side of a connection of HTTP/2.

use super::memory::Memory;
use super::{Arriving, Leaving, Left, WINDOW, poll, words};
use crate::os::Res;
use bytes::Bytes;
use h2::client::{Connection, ResponseFuture, SendRequest};
use http::{Method, Request, StatusCode, Uri, Version};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Poll;

/// The answer to a request: expected, arriving with whether its status is 200, or complete.
enum Answer {
    Expected(ResponseFuture),
    Arriving(Arriving, bool),
}

/// A request whose answer is not complete, with the caller's name for it.
struct Exchange<K> {
    key: K,
    answer: Answer,
}

/// A client's connection; `K` names its requests.
pub struct Client<K> {
    memory: Memory,
    send: SendRequest<Bytes>,
    connection: Connection<Memory, Bytes>,
    exchanges: Vec<Exchange<K>>,
    /// The body that has not left whole; requests leave one after another.
    leaving: Option<(K, Leaving)>,
    /// The end of the connection; None while it lasts.
    ended: Option<Res<()>>,
}

impl<K: Copy + PartialEq> Client<K> {
    /// Begins a connection; its first bytes wait in the output.
    pub fn new() -> Res<Self> {
        let memory = Memory::default();
        let mut settings = h2::client::Builder::new();
        settings
            .enable_push(false)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW);
        let handshake = pin!(settings.handshake(memory.clone()));
        let Poll::Ready(begun) = poll(|context| handshake.poll(context)) else {
            return Err(words("its first bytes do not leave"));
        };
        let (send, connection) = begun.map_err(words)?;
        Ok(Self {
            memory,
            send,
            connection,
            exchanges: Vec::new(),
            leaving: None,
            ended: None,
        })
    }

    /// Returns whether a request can begin: the one before has left whole, and the server takes another.
    pub fn free(&mut self) -> bool {
        self.leaving.is_none()
            && self.ended.is_none()
            && matches!(
                poll(|context| self.send.poll_ready(context)),
                Poll::Ready(Ok(()))
            )
    }

    /// Returns whether the server has ended the connection as planned.
    pub fn closes(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether the body of a request has not left whole.
    pub fn holds(&self) -> bool {
        self.leaving.is_some()
    }

    /// Sends a request with this body as far as the server's windows allow. Call it if `free`.
    pub fn request(&mut self, key: K, host: &str, path: &str, tls: bool, body: Vec<u8>) -> Res<()> {
        let uri = Uri::builder()
            .scheme(if tls { "https" } else { "http" })
            .authority(host)
            .path_and_query(path);
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(uri.build().map_err(words)?)
            .header(http::header::CONTENT_TYPE, "application/octet-stream")
            .header(http::header::CONTENT_LENGTH, body.len())
            .body(())
            .map_err(words)?;
        let (answer, stream) = self.send.send_request(request, false).map_err(words)?;
        let answer = Answer::Expected(answer);
        self.exchanges.push(Exchange { key, answer });
        self.leaving = Some((key, Leaving::new(stream, body.into())));
        self.turn()
    }

    /// Gives up the requests that `open` no longer counts as open: their streams are reset.
    pub fn forget(&mut self, open: impl Fn(&K) -> bool) -> Res<()> {
        self.leaving.take_if(|(key, _)| !open(key));
        self.exchanges.retain(|exchange| open(&exchange.key));
        self.turn()
    }

    /// Passes the bodies of the answers that the bytes complete to `take`, an empty one for a status other
    /// than 200 and for a reset stream. Returns an error if the connection has failed.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Res<()> {
        self.memory.feed(bytes);
        self.turn()?;
        let mut at = 0;
        while at < self.exchanges.len() {
            let (done, body) = match self.exchanges[at].pump() {
                Ok(None) => (false, Vec::new()),
                Ok(Some(body)) => (true, body),
                Err(_) => (true, Vec::new()),
            };
            if done {
                self.exchanges.remove(at);
                take(&body);
            } else {
                at += 1;
            }
        }
        self.turn()
    }

    /// Moves the bytes for the server to the end of `output`.
    pub fn drain(&self, output: &mut Vec<u8>) {
        self.memory.drain(output);
    }

    /// Lets the connection read its input and write its output, in which a part of the leaving body may find
    /// room.
    fn turn(&mut self) -> Res<()> {
        loop {
            if let Some(ended) = &self.ended {
                return ended.clone();
            }
            if let Poll::Ready(ended) = poll(|context| Pin::new(&mut self.connection).poll(context))
            {
                self.ended = Some(ended.map_err(words));
                continue;
            }
            let left = self.leaving.as_mut().map(|(_, body)| body.pump());
            match left {
                None | Some(Left::Nothing) => return Ok(()),
                Some(Left::Some) => {}
                Some(Left::All) => self.leaving = None,
            }
        }
    }
}

impl<K> Exchange<K> {
    /// Takes what has come of the answer; returns its body once it is complete, an empty one for a status
    /// other than 200. An error if the stream was reset.
    fn pump(&mut self) -> Res<Option<Vec<u8>>> {
        if let Answer::Expected(answer) = &mut self.answer {
            match poll(|context| Pin::new(answer).poll(context)) {
                Poll::Pending => return Ok(None),
                Poll::Ready(answer) => {
                    let answer = answer.map_err(words)?;
                    let ours = answer.status() == StatusCode::OK;
                    self.answer = Answer::Arriving(Arriving::new(answer.into_body()), ours);
                }
            }
        }
        let Answer::Arriving(arriving, ours) = &mut self.answer else {
            return Ok(None);
        };
        if !arriving.pump()? {
            return Ok(None);
        }
        let body = std::mem::take(&mut arriving.body);
        Ok(Some(if *ours { body } else { Vec::new() }))
    }
}
