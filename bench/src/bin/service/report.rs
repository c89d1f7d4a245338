//! What was measured, as text, as tables for the book, and as a plot.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::polls::{Cost, Way};
use crate::{Measured, Server, counters, nginx};

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Measured {
    fn rounds(&self, server: Server, way: Way) -> Option<&[Cost]> {
        let (_, costs) = self.polls.iter().find(|(of, _)| *of == server)?;
        Some(&costs[Way::ALL.iter().position(|other| *other == way)?])
    }

    /// The median of the CPU time of a poll, in microseconds.
    fn micros(&self, server: Server, way: Way) -> Option<f64> {
        Some(median(self.rounds(server, way)?.iter().map(|cost| cost.micros).collect()))
    }

    fn instructions(&self, server: Server, way: Way) -> Option<f64> {
        let counted: Option<Vec<f64>> =
            self.rounds(server, way)?.iter().map(|cost| cost.instructions).collect();
        Some(median(counted?))
    }

    /// The service against bare hyper: the median of the rounds, in each of which one came right after the other.
    fn ratio(&self, way: Way) -> f64 {
        let rounds = |server| self.rounds(server, way).unwrap_or_default();
        let pairs = rounds(Server::Ours).iter().zip(rounds(Server::Hyper));
        median(pairs.map(|(ours, hyper)| ours.micros / hyper.micros).collect())
    }

    fn start(&self, of: impl Fn(&crate::Start) -> f64) -> f64 {
        median(self.starts.iter().map(of).collect())
    }

    fn written(&self, clients: usize, of: impl Fn(&crate::Written) -> f64) -> f64 {
        median(self.writes.iter().map(|round| of(&round[clients])).collect())
    }
}

/// One size, for whoever waits at a terminal.
pub(crate) fn text(measured: &Measured) -> String {
    let mut text = format!("{} clusters, answers of {} bytes", measured.clusters, measured.answer.0);
    let _ = writeln!(text, ", {} compressed:", measured.answer.1);
    for way in Way::ALL {
        let _ = write!(text, "  {:<24}", way.as_str());
        for (server, _) in &measured.polls {
            let micros = measured.micros(*server, way).unwrap_or(f64::NAN);
            let _ = write!(text, "{} {micros:.1} µs  ", server.as_str());
        }
        let _ = writeln!(text, "ours / hyper {:.2}", measured.ratio(way));
    }
    let _ = writeln!(
        text,
        "  ready after {:.2} s, {:.0} MiB, at most {:.0} MiB",
        measured.start(|start| start.seconds),
        measured.start(|start| start.resident_mib),
        measured.start(|start| start.peak_mib)
    );
    for (n, clients) in [1, 64].into_iter().enumerate() {
        let _ = writeln!(
            text,
            "  {clients:>2} writers: {:.0} a second, {:.1} for each fsync, {:.0} µs CPU each",
            measured.written(n, |written| written.per_second),
            measured.written(n, |written| written.group),
            measured.written(n, |written| written.cpu_micros),
        );
    }
    if let Some(seeded) = &measured.seed {
        let _ = writeln!(
            text,
            "  from a seed of {:.0} MiB: ready after {:.1} s, at most {:.0} MiB; database {:.0} MiB, -wal {:.0} MiB",
            seeded.seed_mib, seeded.start.seconds, seeded.start.peak_mib, seeded.database_mib, seeded.wal_mib
        );
    }
    text
}

/// Writes the tables and the plot where the book includes them.
pub(crate) fn write(book: &Path, measured: &[Measured]) {
    std::fs::write(book.join("speed-measured.inc"), tables(measured)).expect("written");
    std::fs::write(book.join("diagrams/speed.svg"), plot(measured)).expect("written");
    println!("written: {0}/speed-measured.inc, {0}/diagrams/speed.svg", book.display());
}

/// 100000 as `100,000`.
fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

fn tables(measured: &[Measured]) -> String {
    let mut text = "<!-- written by `make bench` -->\n\n".to_owned();
    let _ = writeln!(text, "{}\n", machine());
    if let Some(last) = measured.last() {
        let (plain, gzip) = last.answer;
        let _ = writeln!(
            text,
            "An answer has {} bytes, compressed {}. Figures of polls are medians of {} rounds, of starts and writes of {}; the seed was loaded once.\n",
            thousands(plain),
            thousands(gzip),
            last.polls.first().map_or(0, |(_, costs)| costs[0].len()),
            last.writes.len()
        );
    }
    polls(&mut text, measured);
    rest(&mut text, measured);
    text
}

fn polls(text: &mut String, measured: &[Measured]) {
    let servers: Vec<Server> =
        measured.first().map_or_else(Vec::new, |one| one.polls.iter().map(|(server, _)| *server).collect());
    text.push_str("| CPU time of one poll, µs | clusters |");
    for server in &servers {
        let _ = write!(text, " {} |", server.as_str());
    }
    text.push_str(" the service / bare hyper |\n|---|---|");
    text.push_str(&"---|".repeat(servers.len() + 1));
    text.push('\n');
    for way in Way::ALL {
        for one in measured {
            let _ = write!(text, "| {} | {} |", way.as_str(), thousands(one.clusters));
            for server in &servers {
                let _ = write!(text, " {:.1} |", one.micros(*server, way).unwrap_or(f64::NAN));
            }
            let _ = writeln!(text, " {:.2} |", one.ratio(way));
        }
    }
    text.push('\n');
    if counters::available() {
        text.push_str(
            "| instructions of one poll | clusters | bare hyper | the service |\n|---|---|---|---|\n",
        );
        for way in Way::ALL {
            for one in measured {
                let of = |server| one.instructions(server, way).unwrap_or(f64::NAN);
                let (hyper, ours) = (of(Server::Hyper), of(Server::Ours));
                let _ = writeln!(
                    text,
                    "| {} | {} | {hyper:.0} | {ours:.0} |",
                    way.as_str(),
                    thousands(one.clusters)
                );
            }
        }
    } else {
        text.push_str("The machine has no hardware counters, so instructions are missing.\n");
    }
    if nginx::version().is_none() {
        text.push_str("nginx was not installed, and is left out.\n");
    }
    text.push('\n');
}

fn rest(text: &mut String, measured: &[Measured]) {
    text.push_str("| the service |");
    for one in measured {
        let _ = write!(text, " {} clusters |", thousands(one.clusters));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(measured.len()));
    text.push('\n');
    let smallest = measured.first().map_or(0.0, |one| one.start(|start| start.resident_mib));
    let mut row = |name: &str, of: &dyn Fn(&Measured) -> String| {
        let _ = write!(text, "| {name} |");
        for one in measured {
            let _ = write!(text, " {} |", of(one));
        }
        text.push('\n');
    };
    row("start to ready, s", &|one| format!("{:.2}", one.start(|start| start.seconds)));
    row("resident memory after the start, MiB", &|one| {
        format!("{:.0}", one.start(|start| start.resident_mib))
    });
    row("of that per cluster, KB", &|one| {
        let clusters = f64::from(u32::try_from(one.clusters).unwrap_or(u32::MAX));
        let more = (one.start(|start| start.resident_mib) - smallest) * 1_048.576 / clusters;
        if one.clusters < 1_000 { String::new() } else { format!("{more:.1}") }
    });
    row("one client that changes one cluster at a time, changes per second", &|one| {
        format!("{:.0}", one.written(0, |written| written.per_second))
    });
    row("CPU time per change, µs", &|one| format!("{:.0}", one.written(0, |written| written.cpu_micros)));
    row("64 such clients, changes per second", &|one| {
        format!("{:.0}", one.written(1, |written| written.per_second))
    });
    row("CPU time per change, µs", &|one| format!("{:.0}", one.written(1, |written| written.cpu_micros)));
    let seeded = |one: &Measured, of: &dyn Fn(&crate::Seeded) -> f64| {
        one.seed.as_ref().map_or_else(String::new, |seeded| format!("{:.1}", of(seeded)))
    };
    row("load a seed into a new store, until ready, s", &|one| seeded(one, &|seeded| seeded.start.seconds));
    row("peak memory meanwhile, MiB", &|one| seeded(one, &|seeded| seeded.start.peak_mib));
    row("size of the database afterwards, MiB", &|one| seeded(one, &|seeded| seeded.database_mib));
    row("size of its `-wal`, MiB", &|one| seeded(one, &|seeded| seeded.wal_mib));
}

/// What it was measured on.
fn machine() -> String {
    let line = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let value = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = line("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse::<usize>().unwrap_or(0);
    let said = |program: &str, argument: &str| {
        let said = Command::new(program).arg(argument).output().ok();
        said.map_or_else(String::new, |said| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    let nginx = nginx::version().map_or_else(String::new, |version| format!(", {version}"));
    format!(
        "Measured on {} ({cores} cores, {} GiB of memory, Linux {}), on {}{nginx}. Clients and servers shared the cores.",
        line("/proc/cpuinfo", "model name"),
        memory >> 20,
        said("uname", "-r"),
        said("date", "+%Y-%m-%d"),
    )
}

/// The first table as bars: a group for each way to poll and each size, a bar for each server.
fn plot(measured: &[Measured]) -> String {
    const LEFT: f64 = 52.0;
    const TOP: f64 = 56.0;
    const HEIGHT: f64 = 220.0;
    const BAR: f64 = 16.0;
    const GAP: f64 = 20.0;
    let servers: Vec<Server> =
        measured.first().map_or_else(Vec::new, |one| one.polls.iter().map(|(server, _)| *server).collect());
    let ways = measured.iter().flat_map(|one| Way::ALL.map(|way| (one, way)));
    let all = ways.flat_map(|(one, way)| servers.iter().filter_map(move |server| one.micros(*server, way)));
    let step = [5.0, 10.0, 20.0, 50.0, 100.0, 200.0];
    let most = all.fold(1.0, f64::max);
    let step = step.into_iter().find(|step| most / step <= 6.0).unwrap_or(500.0);
    let top = (most / step).ceil() * step;
    let group = BAR * servers.iter().map(|_| 1.0).sum::<f64>() + GAP;
    let width = LEFT + group * measured.iter().map(|_| 3.0).sum::<f64>() + 3.0 * GAP;
    let bottom = TOP + HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {:.0}\" role=\"img\" aria-labelledby=\"t\">\n{STYLE}",
        bottom + 56.0
    );
    let mut mark = 0.0;
    while mark <= top {
        let y = bottom - HEIGHT * mark / top;
        let _ = writeln!(svg, "  <path class=\"grid\" d=\"M{LEFT:.0} {y:.1}H{width:.0}\"/>");
        let _ = writeln!(
            svg,
            "  <text class=\"dim end\" x=\"{:.0}\" y=\"{:.1}\">{mark:.0}</text>",
            LEFT - 6.0,
            y + 4.0
        );
        mark += step;
    }
    let mut x = LEFT;
    for (class, server) in ["a", "b", "c"].into_iter().zip(&servers) {
        let _ = writeln!(svg, "  <rect class=\"{class}\" x=\"{x:.0}\" y=\"14\" width=\"12\" height=\"12\"/>");
        let _ = writeln!(svg, "  <text x=\"{:.0}\" y=\"25\">{}</text>", x + 18.0, server.as_str());
        x += 110.0;
    }
    let _ = writeln!(
        svg,
        "  <text class=\"dim\" x=\"{LEFT:.0}\" y=\"46\">CPU time of one poll, µs, by clusters</text>"
    );
    let mut x = LEFT + GAP;
    for way in Way::ALL {
        let from = x;
        for one in measured {
            for (class, server) in ["a", "b", "c"].into_iter().zip(&servers) {
                let high = HEIGHT * one.micros(*server, way).unwrap_or(0.0) / top;
                let _ = writeln!(
                    svg,
                    "  <rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.0}\" height=\"{high:.1}\"/>",
                    bottom - high,
                    BAR - 2.0
                );
                x += BAR;
            }
            let middle = x - (group - GAP) / 2.0;
            let _ = writeln!(
                svg,
                "  <text class=\"dim middle\" x=\"{middle:.1}\" y=\"{:.0}\">{}</text>",
                bottom + 18.0,
                thousands(one.clusters)
            );
            x += GAP;
        }
        let middle = (from + x - GAP) / 2.0;
        let _ = writeln!(
            svg,
            "  <text class=\"middle\" x=\"{middle:.1}\" y=\"{:.0}\">{}</text>",
            bottom + 42.0,
            way.as_str()
        );
        x += GAP;
    }
    svg.push_str("</svg>\n");
    svg
}

/// The colours of both themes, as the diagrams of the book have them.
const STYLE: &str = r#"  <title id="t">CPU time of one poll: the service beside servers that only send bytes.</title>
  <style>
    svg { --ink: #1c2430; --dim: #566275; --grid: #d0d7e2; --a: #9aa7ba; --b: #3f74bd; --c: #b9821d; }
    @media (prefers-color-scheme: dark) {
      svg { --ink: #e4e9f1; --dim: #a7b2c4; --grid: #3b465b; --a: #6b7890; --b: #6ea0e6; --c: #d9a441; }
    }
    text { font-family: system-ui, -apple-system, "Segoe UI", "Open Sans", "DejaVu Sans", sans-serif; font-size: 13px; fill: var(--ink); }
    .dim { fill: var(--dim); font-size: 12px; }
    .middle { text-anchor: middle; }
    .end { text-anchor: end; }
    .grid { stroke: var(--grid); }
    .a { fill: var(--a); } .b { fill: var(--b); } .c { fill: var(--c); }
  </style>
"#;
