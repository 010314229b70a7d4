//! The whole program on real sockets: an emulated headset, an emulated arm on a local bus, the real pipeline between them.

use std::path::Path;
use std::time::Duration;

use telearm::app::{RunOptions, run};
use telearm::config::{Strictness, load};

/// Guards the main job: the emulated hand moves the emulated arm, and the run ends well.
#[test]
fn demo_moves_the_arm() {
    let _ = env_logger::builder()
        .is_test(true)
        .filter_level(log::LevelFilter::Info)
        .try_init();
    let plan = load(Path::new("rt-config/demo.toml"), Strictness::Strict)
        .expect("the shipped plan loads")
        .plan;
    let dir = tempfile::tempdir().expect("a directory");
    let options = RunOptions {
        emulate: true,
        socket: Some(dir.path().join("telearm.sock")),
        time_limit: Some(Duration::from_secs(12)),
        live_view: true,
        ..RunOptions::default()
    };
    let report = run(plan, options).expect("a good run");
    println!("{}", report.text);
    assert!(report.good);
}
