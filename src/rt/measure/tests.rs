use super::wake::parse_cyclictest;
use super::*;
use crate::rt::report::{Named, table};
use crate::time::Span;

/// Ratios are of the same quantile, the median is taken figure by figure, and a missing baseline is never within a bar.
#[test]
fn ratios_and_bars() {
    let (mut ours, mut bare) = (LatencyHistogram::new(), LatencyHistogram::new());
    for us in 1..=1000 {
        ours.record(Span::from_us(2 * us));
        bare.record(Span::from_us(us));
    }
    let ratios = Ratios::of(&ours, &bare);
    for ratio in [ratios.p50, ratios.p99, ratios.p999, ratios.max] {
        assert!((ratio - 2.0).abs() < 0.01, "{ratios}");
    }
    assert!(
        !ratios.within(&STOP_BAR)
            && ratios.within(&Bar {
                p50: 2.1,
                p99: 2.1,
                p999: 2.1
            })
    );
    assert!(!Ratios::of(&ours, &LatencyHistogram::new()).within(&STOP_BAR));
    assert!(!Ratios::of(&LatencyHistogram::new(), &bare).within(&STOP_BAR));
    assert!(!Ratios::of(&LatencyHistogram::new(), &LatencyHistogram::new()).within(&STOP_BAR));
    let run = |p50, p99| Ratios {
        p50,
        p99,
        p999: 1.0,
        max: 1.0,
    };
    let median = Ratios::median(&[run(1.0, 9.0), run(3.0, 2.0), run(2.0, 1.0)]).unwrap();
    assert_eq!((median.p50, median.p99), (2.0, 2.0));
    assert_eq!(Ratios::median(&[]), None);
}

/// The output of cyclictest in nanoseconds: buckets, values beyond them, and the largest.
#[test]
fn cyclictest_output_is_read() {
    let text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n001500 000002\n002500 000001\n\n# Total: 000000003\n\
                # Min Latencies: 01500\n# Avg Latencies: 01833\n# Max Latencies: 15676961\n# Histogram Overflows: 00002\n";
    let histogram = parse_cyclictest(text).unwrap();
    assert_eq!(histogram.count(), 5);
    assert_eq!(histogram.max(), Span::from_ns(15_676_961));
    assert!((histogram.quantile(0.5).as_us() - 2.5).abs() < 0.01);
    assert!(parse_cyclictest("nothing of the kind").is_none());
}

/// A short run of each measurement gives a value for every cycle and every packet. No latency is judged here.
#[test]
fn short_runs_account_for_everything() {
    let _turn = memory::TESTS_TAKE_TURNS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let run = wake(&WakeSetup {
        rate_hz: 500,
        seconds: 0.4,
        priority: 2,
        cyclictest: false,
        ..WakeSetup::default()
    })
    .unwrap();
    assert_eq!(run.ours.count() + run.missed, 201, "deadlines 0 to 200");
    assert!(run.bare.count() > 0 && run.cyclictest.is_err() && run.threads.len() == 2);
    memory::unlock_all();
}

fn print(rows: &[Named<'_>], ratios: &[(&str, Ratios)], sched: &[crate::rt::sched::SchedReport]) {
    println!("{}", table(rows));
    for (name, ratios) in ratios {
        println!("{name}: {ratios}");
    }
    sched
        .iter()
        .filter(|report| !report.is_granted())
        .for_each(|report| println!("{report}"));
}

/// The measurements at length, three runs each, for a person to read: `cargo test --release --lib rt::measure -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes and judges nothing"]
fn long_runs() {
    let seconds = std::env::var("MEASURE_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20.0);
    let (mut to_cyclictest, mut to_bare) = (Vec::new(), Vec::new());
    for rotation in 0..3 {
        let run = wake(&WakeSetup {
            seconds,
            rotation,
            ..WakeSetup::default()
        })
        .unwrap();
        let mut rows = vec![
            Named {
                name: "ours",
                histogram: &run.ours,
            },
            Named {
                name: "bare",
                histogram: &run.bare,
            },
        ];
        let mut ratios = vec![("ours/bare", Ratios::of(&run.ours, &run.bare))];
        match &run.cyclictest {
            Ok(histogram) => {
                rows.push(Named {
                    name: "cyclictest",
                    histogram,
                });
                ratios.push(("ours/cyclictest", Ratios::of(&run.ours, histogram)));
                ratios.push(("bare/cyclictest", Ratios::of(&run.bare, histogram)));
                to_cyclictest.push(Ratios::of(&run.ours, histogram));
            }
            Err(why) => println!("{why}"),
        }
        to_bare.push(Ratios::of(&run.ours, &run.bare));
        print(&rows, &ratios, &run.threads);
        println!("missed {}, {:?}\n", run.missed, run.disturbances);
    }
    println!(
        "MEDIAN wake ours/bare: {:?}",
        Ratios::median(&to_bare).map(|ratios| ratios.to_string())
    );
    println!(
        "MEDIAN wake ours/cyclictest: {:?}\n",
        Ratios::median(&to_cyclictest).map(|ratios| ratios.to_string())
    );
}
