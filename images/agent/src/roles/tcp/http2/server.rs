//! Implements a server's side of a connection of HTTP/2.

use super::memory::Memory;
use super::{Arriving, Leaving, Left, STREAMS, WINDOW, poll, words};
use crate::os::Res;
use bytes::Bytes;
use h2::server::{Connection, Handshake, SendResponse};
use http::{Method, Request, Response, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

enum State {
    /// Until the client's preface has come.
    Begins(Handshake<Memory, Bytes>),
    Open(Connection<Memory, Bytes>),
}

/// A request whose body is not complete.
struct Incoming {
    respond: SendResponse<Bytes>,
    arriving: Arriving,
    /// Whether it is a POST.
    ours: bool,
}

/// A complete request: its body, an empty one if it is no POST, and the way to answer it.
pub struct Complete {
    pub body: Vec<u8>,
    respond: SendResponse<Bytes>,
}

/// A server's connection.
pub struct Server {
    memory: Memory,
    state: State,
    incoming: Vec<Incoming>,
    leaving: Vec<Leaving>,
    /// Whether the client has ended the connection.
    pub closes: bool,
}

impl Server {
    pub fn new() -> Self {
        let memory = Memory::default();
        let mut settings = h2::server::Builder::new();
        settings
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_concurrent_streams(STREAMS);
        let state = State::Begins(settings.handshake(memory.clone()));
        let (incoming, leaving) = (Vec::new(), Vec::new());
        Self {
            memory,
            state,
            incoming,
            leaving,
            closes: false,
        }
    }

    /// Takes bytes of the client. Returns an error if they are no HTTP/2.
    pub fn feed(&mut self, bytes: &[u8]) -> Res<()> {
        self.memory.feed(bytes);
        self.turn()
    }

    /// Returns the next complete request; None if there is none yet. Drops those that the client has given
    /// up.
    pub fn next(&mut self) -> Res<Option<Complete>> {
        let mut at = 0;
        while at < self.incoming.len() {
            match self.incoming[at].arriving.pump() {
                Ok(false) => at += 1,
                Ok(true) => {
                    let Incoming {
                        respond,
                        arriving,
                        ours,
                    } = self.incoming.remove(at);
                    self.turn()?; // tells the client of the room in the windows
                    let body = if ours { arriving.body } else { Vec::new() };
                    return Ok(Some(Complete { body, respond }));
                }
                Err(_) => drop(self.incoming.remove(at)),
            }
        }
        self.turn()?;
        Ok(None)
    }

    /// Answers a request with this body, or refuses it by 400 if there is none; does nothing if the client
    /// has given it up.
    pub fn answer(&mut self, request: Complete, body: Option<Vec<u8>>) -> Res<()> {
        let mut respond = request.respond;
        let status = body
            .as_ref()
            .map_or(StatusCode::BAD_REQUEST, |_| StatusCode::OK);
        let body = body.unwrap_or_default();
        let head = Response::builder()
            .status(status)
            .header(http::header::CONTENT_TYPE, "application/octet-stream")
            .header(http::header::CONTENT_LENGTH, body.len())
            .body(())
            .map_err(words)?;
        if let Ok(stream) = respond.send_response(head, body.is_empty()) {
            self.leaving.push(Leaving::new(stream, body.into()));
        }
        self.turn()
    }

    /// Moves the bytes for the client to the end of `output`.
    pub fn drain(&self, output: &mut Vec<u8>) {
        self.memory.drain(output);
    }

    /// Lets the connection read its input and write its output.
    fn turn(&mut self) -> Res<()> {
        if self.closes {
            return Ok(());
        }
        if let State::Begins(handshake) = &mut self.state {
            match poll(|context| Pin::new(handshake).poll(context)) {
                Poll::Pending => return Ok(()),
                Poll::Ready(begun) => self.state = State::Open(begun.map_err(words)?),
            }
        }
        let State::Open(connection) = &mut self.state else {
            return Ok(());
        };
        loop {
            match poll(|context| connection.poll_accept(context)) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.incoming.push(Incoming::new(request, respond));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => return Err(words(error)),
                Poll::Ready(None) => {
                    self.closes = true;
                    return Ok(());
                }
                Poll::Pending => {}
            }
            let mut idle = true;
            self.leaving.retain_mut(|body| {
                let left = body.pump();
                idle &= left == Left::Nothing;
                left != Left::All
            });
            if idle {
                return Ok(());
            }
        }
    }
}

impl Incoming {
    fn new(request: Request<h2::RecvStream>, respond: SendResponse<Bytes>) -> Self {
        let ours = request.method() == Method::POST;
        let arriving = Arriving::new(request.into_body());
        Self {
            respond,
            arriving,
            ours,
        }
    }
}
