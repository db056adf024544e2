//! Loads the installed libzmq at run time, so that an agent that does not use ZeroMQ need not load it.
//!
//! Names and constants are those of `zmq.h`; zmq(7) and the manual page of each function describe them.

use crate::os::Res;
use libc::{c_char, c_int, c_void};
use libloading::Library as Shared;
use std::ffi::{CStr, CString};

const FILE: &str = "libzmq.so.5";

pub const DEALER: c_int = 5;
pub const PUB: c_int = 1;
pub const SUB: c_int = 2;
pub const PAIR: c_int = 0;
pub const REQ: c_int = 3;
pub const REP: c_int = 4;
pub const ROUTER: c_int = 6;

pub const ROUTING_ID: c_int = 5;
pub const SUBSCRIBE: c_int = 6;
pub const RATE: c_int = 8;
pub const RECOVERY_IVL: c_int = 9;
pub const RCVMORE: c_int = 13;
pub const FD: c_int = 14;
const EVENTS: c_int = 15;
pub const LINGER: c_int = 17;
pub const RECONNECT_IVL: c_int = 18;
pub const SNDHWM: c_int = 23;
pub const RCVHWM: c_int = 24;
pub const ROUTER_MANDATORY: c_int = 33;
pub const IPV6: c_int = 42;
pub const MULTICAST_MAXTPDU: c_int = 84;

const POLLIN: c_int = 1;
const DONTWAIT: c_int = 1;
const SNDMORE: c_int = 2;
/// ZMQ_EVENT_HANDSHAKE_SUCCEEDED of zmq.h.
pub const HANDSHAKEN: c_int = 0x1000;
/// ZMQ_EVENT_DISCONNECTED of zmq.h.
pub const DISCONNECTED: c_int = 0x0200;

type Handle = *mut c_void;

pub struct Library {
    _shared: Shared,
    ctx_new: unsafe extern "C" fn() -> Handle,
    ctx_term: unsafe extern "C" fn(Handle) -> c_int,
    socket: unsafe extern "C" fn(Handle, c_int) -> Handle,
    close: unsafe extern "C" fn(Handle) -> c_int,
    bind: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(Handle, *const c_char) -> c_int,
    setsockopt: unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> c_int,
    getsockopt: unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut usize) -> c_int,
    send: unsafe extern "C" fn(Handle, *const c_void, usize, c_int) -> c_int,
    recv: unsafe extern "C" fn(Handle, *mut c_void, usize, c_int) -> c_int,
    monitor: unsafe extern "C" fn(Handle, *const c_char, c_int) -> c_int,
    has: unsafe extern "C" fn(*const c_char) -> c_int,
    errno: unsafe extern "C" fn() -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Library {
    pub fn load() -> Res<Self> {
        let wrong = |e: libloading::Error| format!("{FILE}: {e}; install Debian's libzmq5");
        // SAFETY: loading runs initialisers of libzmq and its dependencies, which is allowed at any time.
        let shared = unsafe { Shared::new(FILE) }.map_err(wrong)?;
        // SAFETY: the types match the declarations of zmq.h, version 4.
        unsafe {
            Ok(Self {
                ctx_new: *shared.get(b"zmq_ctx_new\0").map_err(wrong)?,
                ctx_term: *shared.get(b"zmq_ctx_term\0").map_err(wrong)?,
                socket: *shared.get(b"zmq_socket\0").map_err(wrong)?,
                close: *shared.get(b"zmq_close\0").map_err(wrong)?,
                bind: *shared.get(b"zmq_bind\0").map_err(wrong)?,
                connect: *shared.get(b"zmq_connect\0").map_err(wrong)?,
                setsockopt: *shared.get(b"zmq_setsockopt\0").map_err(wrong)?,
                getsockopt: *shared.get(b"zmq_getsockopt\0").map_err(wrong)?,
                send: *shared.get(b"zmq_send\0").map_err(wrong)?,
                recv: *shared.get(b"zmq_recv\0").map_err(wrong)?,
                monitor: *shared.get(b"zmq_socket_monitor\0").map_err(wrong)?,
                has: *shared.get(b"zmq_has\0").map_err(wrong)?,
                errno: *shared.get(b"zmq_errno\0").map_err(wrong)?,
                strerror: *shared.get(b"zmq_strerror\0").map_err(wrong)?,
                _shared: shared,
            })
        }
    }

    /// Returns whether the library was built with a capability, such as "pgm" or "curve" (zmq_has(3)).
    pub fn has(&self, what: &str) -> bool {
        let what = text(what);
        // SAFETY: `what` is valid until the call returns.
        unsafe { (self.has)(what.as_ptr()) == 1 }
    }

    fn error(&self) -> ZmqError {
        // SAFETY: both functions take and return plain values; the text is static.
        unsafe {
            let number = (self.errno)();
            let message = CStr::from_ptr((self.strerror)(number));
            ZmqError {
                number,
                text: message.to_string_lossy().into_owned(),
            }
        }
    }
}

/// A failed call of libzmq; `number` is an errno or a code of libzmq.
#[derive(Debug)]
pub struct ZmqError {
    pub number: c_int,
    pub text: String,
}

/// Converts an address or a name to a C string; empty if it contains a zero byte.
fn text(of: &str) -> CString {
    CString::new(of).unwrap_or_default()
}

/// A libzmq context: a node's sockets and their I/O thread.
pub struct Context {
    library: Library,
    handle: Handle,
}

impl Context {
    pub fn new(library: Library) -> Res<Self> {
        // SAFETY: the call has no argument. A null result means that memory or descriptors are exhausted.
        let handle = unsafe { (library.ctx_new)() };
        if handle.is_null() {
            return Err(format!("no ZeroMQ context: {}", library.error().text));
        }
        Ok(Self { library, handle })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: sockets hold a reference to the context, so all of them are closed.
        unsafe { (self.library.ctx_term)(self.handle) };
    }
}

pub struct Socket {
    context: std::rc::Rc<Context>,
    handle: Handle,
}

impl Socket {
    pub fn new(context: &std::rc::Rc<Context>, kind: c_int) -> Res<Self> {
        let library = &context.library;
        // SAFETY: the context stays open as long as this socket holds it.
        let handle = unsafe { (library.socket)(context.handle, kind) };
        if handle.is_null() {
            return Err(format!("no ZeroMQ socket: {}", library.error().text));
        }
        let socket = Self {
            context: context.clone(),
            handle,
        };
        // The socket does not linger over unsent messages when it is closed, since the run's drain phase has
        // waited for them.
        socket.set(LINGER, 0)?;
        Ok(socket)
    }

    fn library(&self) -> &Library {
        &self.context.library
    }

    fn done(&self, status: c_int) -> Result<(), ZmqError> {
        if status < 0 {
            Err(self.library().error())
        } else {
            Ok(())
        }
    }

    pub fn set(&self, option: c_int, value: i32) -> Res<()> {
        self.set_bytes(option, &value.to_ne_bytes())
    }

    pub fn set_bytes(&self, option: c_int, value: &[u8]) -> Res<()> {
        let library = self.library();
        // SAFETY: the pointer and length are those of `value`.
        let status = unsafe {
            (library.setsockopt)(self.handle, option, value.as_ptr().cast(), value.len())
        };
        self.done(status)
            .map_err(|e| format!("ZeroMQ option {option}: {}", e.text))
    }

    /// Returns the value of a socket option that is an int; 0 if the call fails.
    pub fn get(&self, option: c_int) -> c_int {
        let (mut value, mut size): (c_int, usize) = (0, size_of::<c_int>());
        let library = self.library();
        // SAFETY: both pointers point to local variables of the given sizes.
        let status = unsafe {
            (library.getsockopt)(self.handle, option, (&raw mut value).cast(), &raw mut size)
        };
        if status < 0 { 0 } else { value }
    }

    pub fn bind(&self, address: &str) -> Res<()> {
        let wanted = text(address);
        // SAFETY: `wanted` is valid until the call returns.
        let status = unsafe { (self.library().bind)(self.handle, wanted.as_ptr()) };
        self.done(status)
            .map_err(|e| format!("{address}: {}", e.text))
    }

    pub fn connect(&self, address: &str) -> Res<()> {
        let wanted = text(address);
        // SAFETY: `wanted` is valid until the call returns.
        let status = unsafe { (self.library().connect)(self.handle, wanted.as_ptr()) };
        self.done(status)
            .map_err(|e| format!("{address}: {}", e.text))
    }

    /// Returns a socket that receives an event for each connection of this socket that is established or
    /// lost.
    pub fn monitored(&self, name: &str) -> Res<Socket> {
        let address = format!("inproc://{name}");
        let wanted = text(&address);
        // SAFETY: `wanted` is valid until the call returns.
        let status = unsafe {
            (self.library().monitor)(self.handle, wanted.as_ptr(), HANDSHAKEN | DISCONNECTED)
        };
        self.done(status)
            .map_err(|e| format!("{address}: {}", e.text))?;
        let monitor = Socket::new(&self.context, PAIR)?;
        monitor.connect(&address)?;
        Ok(monitor)
    }

    /// Sends a message of these parts without waiting, either all parts or none; an error if libzmq does not
    /// accept it.
    pub fn send(&self, parts: &[&[u8]]) -> Result<(), ZmqError> {
        for (i, part) in parts.iter().enumerate() {
            let more = if i + 1 < parts.len() { SNDMORE } else { 0 };
            let library = self.library();
            // SAFETY: the pointer and length are those of `part`, which the call copies.
            let status = unsafe {
                (library.send)(
                    self.handle,
                    part.as_ptr().cast(),
                    part.len(),
                    DONTWAIT | more,
                )
            };
            self.done(status)?;
        }
        Ok(())
    }

    /// Returns whether a message can be received. Reading this state also resets the descriptor's edge
    /// (zmq_getsockopt(3)).
    pub fn can_receive(&self) -> bool {
        self.get(EVENTS) & POLLIN != 0
    }

    /// Receives the next message without waiting; returns its parts, each cut to the length of `room`, or
    /// None if there is no message or the call fails.
    pub fn receive(&self, room: &mut [u8]) -> Option<Vec<Vec<u8>>> {
        let mut parts = Vec::new();
        if !self.can_receive() {
            return None;
        }
        loop {
            let library = self.library();
            // SAFETY: the pointer and length are those of `room`.
            let n = unsafe {
                (library.recv)(self.handle, room.as_mut_ptr().cast(), room.len(), DONTWAIT)
            };
            let length = usize::try_from(n).ok()?;
            parts.push(room[..length.min(room.len())].to_vec());
            if self.get(RCVMORE) == 0 {
                return Some(parts);
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the socket is open, and this is its only owner.
        unsafe { (self.library().close)(self.handle) };
    }
}
