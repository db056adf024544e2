//! Reads and changes the size of a node's writable tmpfs, from inside the node's mount namespace.

use crate::os::{self, Res};
use std::ffi::CString;

/// A directory of the tmpfs that holds everything a node writes (see `private`).
const PLACE: &str = "/tmp";

/// The size of a node's writable file systems, and their free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub size_bytes: u64,
    pub free_bytes: u64,
    page_bytes: u64,
}

impl Space {
    /// Reads the present size and free space.
    pub fn now() -> Res<Self> {
        let place = CString::new(PLACE).map_err(|e| format!("disk: {e}"))?;
        // SAFETY: a zeroed statvfs is valid, and the kernel fills it.
        let about = unsafe {
            let mut about: libc::statvfs = std::mem::zeroed();
            os::check(libc::statvfs(place.as_ptr(), &mut about))
                .map_err(|e| format!("disk: {PLACE}: {e}"))?;
            about
        };
        Ok(Self {
            size_bytes: about.f_blocks * about.f_frsize,
            free_bytes: about.f_bfree * about.f_frsize,
            page_bytes: about.f_frsize,
        })
    }

    /// Sets the size to the space that the files take, at least one page, since a tmpfs of size 0 has no
    /// limit.
    pub fn shrink(&self) -> Res<()> {
        Self::resize((self.size_bytes - self.free_bytes).max(self.page_bytes))
    }

    /// Sets the size in bytes; an error if the files take more.
    pub fn resize(bytes: u64) -> Res<()> {
        let place = CString::new(PLACE).map_err(|e| format!("disk: {e}"))?;
        let options = CString::new(format!("size={bytes}")).map_err(|e| format!("disk: {e}"))?;
        // SAFETY: all are valid C strings; the kernel ignores source and type when a mount changes.
        os::check(unsafe {
            libc::mount(
                std::ptr::null(),
                place.as_ptr(),
                std::ptr::null(),
                libc::MS_REMOUNT | libc::MS_NODEV,
                options.as_ptr().cast(),
            )
        })
        .map(drop)
        .map_err(|e| format!("disk: {PLACE} cannot get {bytes} bytes: {e}"))
    }
}
