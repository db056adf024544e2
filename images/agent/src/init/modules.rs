//! Loads kernel modules: those of a list in its order, and the drivers of network devices in passthrough.

use super::log;
use crate::os::{self, Res};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

const PCI: &str = "/sys/bus/pci/devices";
/// PCI class 02: network controllers.
const NETWORK: &str = "0x02";
const VIRTIO: &str = "0x1af4";

/// Loads the modules of the file `list`, one path per line, in its order; a module that is loaded already is
/// no error. Does nothing without the file, as for a kernel without modules.
pub fn load_listed(list: &str) -> Res<()> {
    let Ok(text) = std::fs::read_to_string(list) else {
        return Ok(());
    };
    text.lines().filter(|l| !l.is_empty()).try_for_each(load)
}

fn load(path: &str) -> Res<()> {
    let fail = |e: std::io::Error| format!("module {path}: {e}; the image is broken");
    let file = File::open(path).map_err(fail)?;
    let none = CString::default();
    // SAFETY: an open file and a valid, empty C string.
    let outcome =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), none.as_ptr(), 0) };
    match os::check(outcome as libc::c_int) {
        Err(e) if e.raw_os_error() != Some(libc::EEXIST) => Err(fail(e)),
        _ => Ok(()),
    }
}

/// Loads a driver for each PCI network device that has none and is not virtio, by its alias, as udev does;
/// logs failures.
pub fn load_for_pci() {
    let Ok(devices) = std::fs::read_dir(PCI) else {
        return; // the VM has no PCI
    };
    for device in devices.flatten().map(|d| d.path()) {
        let is = |file: &str, start: &str| read(&device, file).starts_with(start);
        if is("class", NETWORK) && !is("vendor", VIRTIO) && !device.join("driver").exists() {
            let alias = read(&device, "modalias");
            let outcome = Command::new("/sbin/modprobe").arg(alias.trim()).status();
            if !outcome.is_ok_and(|s| s.success()) {
                log(&format!(
                    "{}: no driver for {}",
                    device.display(),
                    alias.trim()
                ));
            }
        }
    }
}

fn read(device: &Path, file: &str) -> String {
    std::fs::read_to_string(device.join(file)).unwrap_or_default()
}
