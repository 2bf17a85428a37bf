use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A directory with files of a kernel, which is removed at the end.
struct FakeRoot(PathBuf);

impl FakeRoot {
    fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("verger-memory-{}-{number}", std::process::id());
        let root = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&root.0).unwrap();
        for (file, text) in files {
            let file = root.0.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    fn usage(&self) -> Result<String, String> {
        let usage = KernelFiles { root: self.0.clone() }.usage();
        let text = |usage: MemoryUsage| format!("{}/{} {}", usage.used, usage.limit, usage.found);
        let root = format!("{}/", self.0.display());
        usage.map(text).map_err(|error| error.to_string().replace(&root, ""))
    }
}

impl Drop for FakeRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 1000 KiB, of which 600 KiB are used.
const MACHINE: (&str, &str) = (MEMINFO, "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
const GROUP: (&str, &str) = (CGROUP, "0::/app.slice/app.service\n");

fn check(files: &[(&str, &str)], expected: Result<&str, &str>) {
    let usage = FakeRoot::new(files).usage();
    assert_eq!(usage.as_deref().map_err(String::as_str), expected, "{files:?}");
}

#[test]
fn seed4_42_a_limit_of_the_group_is_preferred_to_the_memory_of_the_machine() {
    const SERVICE: &str = "sys/fs/cgroup/app.slice/app.service/memory.max";
    const USED: (&str, &str) = ("sys/fs/cgroup/app.slice/app.service/memory.current", "900\n");
    const FROM_MACHINE: Result<&str, &str> = Ok("614400/1024000 machine");

    check(&[MACHINE], FROM_MACHINE);
    check(&[MACHINE, GROUP], FROM_MACHINE);
    check(&[MACHINE, GROUP, (SERVICE, "1000\n"), USED], Ok("900/1000 cgroup v2"));
    check(&[GROUP, (SERVICE, "1000\n"), USED], Ok("900/1000 cgroup v2"));
    // No limit, none that can be reached, and none that leaves room for a process.
    for none in ["max\n", "1024001\n", "18446744073709551615\n", "0\n"] {
        check(&[MACHINE, GROUP, (SERVICE, none), USED], FROM_MACHINE);
    }
    check(&[MACHINE, GROUP, (SERVICE, "1024000\n"), USED], Ok("900/1024000 cgroup v2"));
    check(&[MACHINE, GROUP, (SERVICE, "1000\n")], FROM_MACHINE);
}

#[test]
fn memory_that_the_kernel_takes_back_is_not_used() {
    let group = "sys/fs/cgroup/app.slice/app.service";
    for (stat, used) in [
        ("anon 1\ninactive_file 300\nactive_file 50\nslab_reclaimable 25\n", "525/1000 cgroup v2"),
        ("active_file 300\nslab_unreclaimable 50\nslab 75\n", "600/1000 cgroup v2"),
        ("total_inactive_file 300\ninactive_files 1\n", "900/1000 cgroup v2"),
        ("inactive_file 901\n", "0/1000 cgroup v2"),
        ("", "900/1000 cgroup v2"),
    ] {
        let files = [
            MACHINE,
            GROUP,
            (&*format!("{group}/memory.max"), "1000"),
            (&*format!("{group}/memory.current"), "900"),
            (&*format!("{group}/memory.stat"), stat),
        ];
        check(&files, Ok(used));
    }
}

#[test]
fn the_fullest_of_the_groups_above_counts() {
    let slice = |used| {
        [
            MACHINE,
            GROUP,
            ("sys/fs/cgroup/app.slice/app.service/memory.max", "1000"),
            ("sys/fs/cgroup/app.slice/app.service/memory.current", "500"),
            ("sys/fs/cgroup/app.slice/memory.max", "4000"),
            ("sys/fs/cgroup/app.slice/memory.current", used),
        ]
    };
    check(&slice("1999"), Ok("500/1000 cgroup v2"));
    check(&slice("2001"), Ok("2001/4000 cgroup v2"));
}

#[test]
fn a_group_whose_path_is_that_of_the_host_is_found_at_the_mount() {
    for path in ["0::/", "0::/docker/0123", "0::/../../docker", "0::/.."] {
        check(
            &[
                MACHINE,
                (CGROUP, path),
                ("sys/fs/cgroup/memory.max", "1000"),
                ("sys/fs/cgroup/memory.current", "10"),
                // Outside of the mount.
                ("sys/docker/memory.max", "20"),
                ("sys/docker/memory.current", "10"),
            ],
            Ok("10/1000 cgroup v2"),
        );
    }
}

#[test]
fn cgroup_v1_is_read_where_v2_has_no_limit() {
    let hybrid = "9:name=systemd:/init.scope\n4:cpu,memory:/app:1\n0::/app:1\n";
    let v1 = |limit| {
        [
            MACHINE,
            (CGROUP, hybrid),
            ("sys/fs/cgroup/unified/cgroup.procs", ""),
            ("sys/fs/cgroup/memory/app:1/memory.limit_in_bytes", limit),
            ("sys/fs/cgroup/memory/app:1/memory.usage_in_bytes", "70"),
            (
                "sys/fs/cgroup/memory/app:1/memory.stat",
                "inactive_file 1\ntotal_inactive_file 15\ntotal_active_file 5\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "99999\n"),
        ]
    };
    check(&v1("100"), Ok("50/100 cgroup v1"));
    check(&v1("9223372036854771712\n"), Ok("614400/1024000 machine"));
    // That number is no limit either where the memory of the machine is unknown.
    check(&v1("9223372036854771712\n")[1..], Err(NO_MEMINFO));

    let mut both = v1("100").to_vec();
    both.push(("sys/fs/cgroup/unified/app:1/memory.max", "200"));
    both.push(("sys/fs/cgroup/unified/app:1/memory.current", "10"));
    check(&both, Ok("10/200 cgroup v2"));
}

const NO_MEMINFO: &str = "can't read `proc/meminfo`: No such file or directory (os error 2)";

#[test]
fn kin_157_meminfo_has_its_lines_in_any_order_and_a_missing_field_is_an_error() {
    let meminfo = |text| check(&[(MEMINFO, text)], Ok("512000/1024000 machine"));
    meminfo("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    500 kB\n");
    meminfo("MemAvailable: 500 kB\nCached:\nMemTotal: 1000 kB");
    meminfo("MemAvailable: 500\nMemTotal: 1000\n");

    for (text, field) in [
        ("MemTotal: 1000 kB\n", "MemAvailable"),
        ("MemAvailable: 500 kB\nMemTotalX: 1 kB\nXMemTotal: 1 kB\n", "MemTotal"),
        ("", "MemTotal"),
    ] {
        let error = format!("`proc/meminfo` has no field `{field}`; set a `source`");
        check(&[(MEMINFO, text)], Err(&error));
    }
    let error = "`proc/meminfo` has \"many\" where a number of bytes belongs; set a `source`";
    check(&[(MEMINFO, "MemTotal: many kB\nMemAvailable: 1 kB\n")], Err(error));
    check(&[], Err(NO_MEMINFO));

    let missing = FakeRoot::new(&[(MEMINFO, "MemTotal: 1000 kB\n")]);
    let error = KernelFiles { root: missing.0.clone() }.usage().unwrap_err();
    let problem = error.get_ref().unwrap().downcast_ref::<FileProblem>().unwrap();
    assert!(matches!(problem, FileProblem::MissingField { field: "MemAvailable", .. }));
}

#[test]
fn kin_157_499_used_of_1000_are_below_a_threshold_of_a_half_and_500_are_not() {
    for (used, ratio_reached) in [(499, false), (500, true)] {
        let available = format!("MemTotal: 1000 kB\nMemAvailable: {} kB\n", 1000 - used);
        let root = FakeRoot::new(&[(MEMINFO, &available)]);
        let usage = KernelFiles { root: root.0.clone() }.usage().unwrap();
        assert_eq!(usage.ratio() >= 0.5, ratio_reached, "{used}");
    }
}

#[test]
fn a_file_of_a_group_without_a_number_is_an_error() {
    let files = [
        MACHINE,
        GROUP,
        ("sys/fs/cgroup/app.slice/memory.max", "-1"),
        ("sys/fs/cgroup/app.slice/memory.current", "1"),
    ];
    let error = "`sys/fs/cgroup/app.slice/memory.max` has \"-1\" where a number of bytes belongs; \
                 set a `source`";
    check(&files, Err(error));
}

#[cfg(target_os = "linux")]
#[test]
fn the_files_of_this_machine_are_understood() {
    let usage = KernelFiles { root: PathBuf::from("/") }.usage().unwrap();
    assert!(usage.limit > 1 << 20 && usage.used <= usage.limit, "{usage:?}");
}

#[test]
fn a_usage_is_shown_with_its_percentage_and_its_limit() {
    const MIB: u64 = 1 << 20;
    let found = MemoryLimit::CgroupV2;
    for (used, limit, text) in [
        (471 * MIB, 512 * MIB, "91 % of 512 MiB (cgroup v2)"),
        (512 * MIB, 512 * MIB, "100 % of 512 MiB (cgroup v2)"),
        (0, 1536 * MIB, "0 % of 1.5 GiB (cgroup v2)"),
        (899, 1000, "89 % of 1000 B (cgroup v2)"),
        (1, 1024, "0 % of 1 KiB (cgroup v2)"),
        (u64::MAX, u64::MAX, "100 % of 15.9 EiB (cgroup v2)"),
        (1, 0, "100 % of 0 B (cgroup v2)"),
    ] {
        assert_eq!(MemoryUsage { used, limit, found }.to_string(), text);
    }
    assert_eq!(MemoryUsage::new(1, 2).to_string(), "50 % of 2 B");
    assert_eq!(MemoryUsage::new(1, 0).ratio(), 0.0, "no limit is never reached");
}
