//! How much memory a run may hold.
//!
//! The budget is for the whole process. What counts is resident anonymous memory, as the kernel counts it:
//! mapped files are not in it, since the system takes their pages back when it needs them.

use std::path::Path;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::sync::Once;

use crate::error::{Error, Result};

/// Memory that cannot be computed beforehand: buffers of readers, stacks, what the allocator keeps.
const RESERVE: usize = 16 << 20;

/// By how much what the process holds differs from run to run.
const SPREAD: usize = 4 << 20;

/// Bytes from which on an allocation is a mapping of its own, which goes when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED: i32 = 4 << 20;

/// A limit to the memory of the process.
///
/// ```
/// use ferrank_runtime::budget::Budget;
///
/// let budget = Budget::new(Some(1 << 20));
/// assert!(budget.check(50 << 20, "50 MiB of sums").unwrap_err().to_string().contains("use at least"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Bytes.
    limit: usize,
}

impl Budget {
    /// A limit of `bytes`; `None`: what the process holds, and half of what the machine and its control group
    /// have free.
    pub fn new(bytes: Option<u64>) -> Self {
        let limit = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Budget { limit: limit.or_else(|| default_limit(1)).unwrap_or(usize::MAX) }
    }

    /// Bytes that are left, once memory that is free within the process was given back.
    pub fn left(&self) -> usize {
        self.left_for(usize::MAX)
    }

    /// Bytes that are left. Memory that is free within the process is given back if fewer than `wanted` are left otherwise:
    /// most of it would be taken again at once.
    pub fn left_for(&self, wanted: usize) -> usize {
        let left = || self.limit.saturating_sub(held()).saturating_sub(RESERVE);
        configure_allocator();
        let found = left();
        if found >= wanted {
            return found;
        }
        give_back();
        left()
    }

    /// The error where `what` needs `bytes` more than the process holds.
    pub fn too_small(&self, bytes: usize, what: &str) -> Error {
        let mib = |bytes: usize| bytes.div_ceil(1 << 20);
        Error::Resource(format!(
            "memory_limit: {} MiB do not do for {what}, with {} MiB held already; use at least {} MiB",
            mib(self.limit),
            mib(held()),
            mib(held() + RESERVE + bytes + SPREAD)
        ))
    }

    /// Ok if a limit of `limit` leaves `bytes` for `what`, or they are so few that they are in the reserve; then
    /// nobody is asked, which takes longer than a small run may.
    pub fn check_early(limit: Option<u64>, bytes: usize, what: &str) -> Result<()> {
        if bytes <= RESERVE { Ok(()) } else { Budget::new(limit).check(bytes, what).map(drop) }
    }

    /// The bytes that are left, if they do for `what`, which needs `bytes`.
    pub fn check(&self, bytes: usize, what: &str) -> Result<usize> {
        let left = self.left_for(bytes);
        if bytes <= left { Ok(left) } else { Err(self.too_small(bytes, what)) }
    }
}

/// What each of `processes` processes of a machine may hold if nothing is said: what this one does, and its
/// share of half of what is free. `None` where the system does not tell.
pub fn default_limit(processes: usize) -> Option<usize> {
    free().map(|free| held().saturating_add(free / 2 / processes.max(1)))
}

/// Gives pages that were freed back to the system, where the allocator keeps them.
pub fn give_back() {
    configure_allocator();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the allocator give back what is free at the end of its blocks.
///
/// Trimming leaves what lies at the end of a thread's arena, and the blocks that glibc takes from arenas grow
/// with those that were freed. So large ones are mapped from the first call on, and arenas trimmed as they shrink.
fn configure_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        static ONCE: Once = Once::new();
        // SAFETY: they may be called at any time, from any thread.
        ONCE.call_once(|| unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MAPPED);
        });
    }
}

/// Bytes of anonymous memory that the process holds; 0 where the system does not tell.
fn held() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kilobytes(&status, "RssAnon:").unwrap_or(0)
}

/// Bytes that the machine has free, or its control group if that is less.
fn free() -> Option<usize> {
    let machine = kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(group().map_or(machine, |group| group.min(machine)))
}

/// Bytes that the control group of the process has free, the cache of files not counted.
fn group() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    free_in_groups(Path::new("/sys/fs/cgroup"), path)
}

/// Bytes that the control group at `path` below `root` has free: the limit may be set on any group above.
fn free_in_groups(root: &Path, path: &str) -> Option<usize> {
    let folder = root.join(path.trim_start_matches('/'));
    let groups = folder.ancestors().take_while(|group| group.starts_with(root));
    groups.filter_map(free_in_group).min()
}

/// `None` for a group without a limit.
fn free_in_group(folder: &Path) -> Option<usize> {
    let number = |name: &str| std::fs::read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
    let (most, used) = (number("memory.max")?, number("memory.current")?);
    let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = value(&stat, "inactive_file ").unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(cache)))
}

fn kilobytes(text: &str, name: &str) -> Option<usize> {
    value(text, name).map(|kilobytes| kilobytes << 10)
}

/// The number after `name`, which begins a line of `text`.
fn value(text: &str, name: &str) -> Option<usize> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_read() {
        let text = "VmRSS:\t  12 kB\nRssAnon:\t     345 kB\n";
        assert_eq!(kilobytes(text, "RssAnon:"), Some(345 << 10));
        assert_eq!(kilobytes(text, "None:"), None);
    }

    #[test]
    fn the_group_with_the_least_to_spare_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |group: &str, [most, used]: [&str; 2], stat: Option<&str>| {
            let folder = root.path().join(group);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("memory.max"), most).unwrap();
            std::fs::write(folder.join("memory.current"), used).unwrap();
            stat.iter().for_each(|stat| std::fs::write(folder.join("memory.stat"), stat).unwrap());
        };
        write("above", ["1000\n", "400\n"], None);
        write("above/own", ["2000\n", "900\n"], Some("file 500\ninactive_file 300\n"));
        write("above/tight", ["700\n", "900\n"], Some("inactive_file 300\n"));
        write("above/full", ["700\n", "900\n"], None);
        write("free", ["max\n", "900\n"], None);
        let free = |path: &str| free_in_groups(root.path(), path);
        assert_eq!(free("/above/own"), Some(600));
        assert_eq!(free("/above/tight"), Some(100));
        assert_eq!(free("/above/full"), Some(0));
        assert_eq!((free("/free"), free("/")), (None, None));
    }

    #[test]
    fn what_is_too_little_says_what_would_do() {
        let budget = Budget::new(Some(1 << 20));
        assert_eq!(budget.left(), 0);
        let error = budget.check(50 << 20, "trees").unwrap_err().to_string();
        assert!(error.contains("1 MiB do not do for trees") && error.contains("use at least"), "{error}");
        assert!(Budget::new(Some(1 << 40)).check(1 << 30, "trees").is_ok());
    }
}
