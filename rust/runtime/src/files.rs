//! Files that can be read again and never keep a reader waiting.

use std::fs::{File, Metadata};
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;

use crate::error::{Error, Result};

/// What is known of the regular file at `path`. To be asked before the file is opened, which waits for a writer
/// where it is a pipe.
///
/// # Errors
/// [`Error::File`] if there is none, or it is a folder, a pipe or a device.
///
/// ```
/// # use std::path::Path;
/// use ferrank_runtime::files::regular;
///
/// assert!(regular(Path::new("Cargo.toml")).is_ok());
/// assert!(regular(Path::new(".")).is_err());
/// ```
pub fn regular(path: &Path) -> Result<Metadata> {
    let found = std::fs::metadata(path).map_err(|e| Error::file(path, e))?;
    if found.is_dir() {
        return Err(Error::file(path, IoError::new(ErrorKind::IsADirectory, "is a folder; name a file in it")));
    }
    if !found.is_file() {
        let message = "is a pipe or a device; files are read more than once, so save it to a regular one first";
        return Err(Error::file(path, IoError::new(ErrorKind::InvalidInput, message)));
    }
    Ok(found)
}

/// Fills `into` with the bytes of `file` from `at` on, wherever others read it.
///
/// # Errors
/// The system's; [`ErrorKind::UnexpectedEof`] where the file ends before.
pub fn read_exact_at(file: &File, into: &mut [u8], at: u64) -> std::io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, into, at);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < into.len() {
            match std::os::windows::fs::FileExt::seek_read(file, &mut into[done..], at + done as u64)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

/// Has `length` bytes of `file` from `at` on brought into memory meanwhile, where the system takes the advice.
pub fn will_need(file: &File, at: u64, length: u64) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor is open; what cannot be done is left undone.
        unsafe {
            libc::posix_fadvise(file.as_raw_fd(), at as libc::off_t, length as libc::off_t, libc::POSIX_FADV_WILLNEED);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, at, length);
}

/// Bytes that files in `folder` may still take; `None` where the system does not tell.
///
/// ```
/// # use std::path::Path;
/// use ferrank_runtime::files::free_space;
///
/// assert_eq!(free_space(Path::new("/no/such/folder")), None);
/// ```
pub fn free_space(folder: &Path) -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
        let mut found = std::mem::MaybeUninit::<libc::statvfs64>::uninit();
        // SAFETY: the path ends with a zero, and what is found is read only if the call has written it.
        let found = unsafe {
            match libc::statvfs64(path.as_ptr(), found.as_mut_ptr()) {
                0 => found.assume_init(),
                _ => return None,
            }
        };
        // Some file systems tell nothing, and have no blocks at all.
        (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        let _ = folder;
        None
    }
}

/// Makes `file` so many bytes long, all of which have a place on the disk.
///
/// # Errors
/// The disk is full.
pub fn allocate(file: &File, length: u64) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let length = libc::off_t::try_from(length).map_err(|_| IoError::from(ErrorKind::FileTooLarge))?;
        // SAFETY: the descriptor is open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => Ok(()),
            code => Err(IoError::from_raw_os_error(code)),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), length), &mut &*file).map(drop)
    }
}
