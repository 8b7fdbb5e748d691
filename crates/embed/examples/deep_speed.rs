//! Measures the deep model on one thread: passages of 128 tokens, and a question of 12 tokens and two marks.
//!
//! `cargo run --release -p shelf-embed --example deep_speed [FOLDER [PYTHON]]`; given the folder of the model's
//! reference implementation, `reference.py` with its files, it takes turns with that, so that both see the same
//! machine. Install SciPy as well as numpy: without it, the reference computes the error function in a Python loop. The
//! time on the processor is measured next to the time on the clock, because other programs disturb it less.

#![allow(clippy::print_stdout)]
#![expect(unsafe_code, reason = "the clock of a thread has no safe interface")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use shelf_embed::{Deep, Kernel};

/// Tokens of a passage and of a question, with the marks of beginning and end.
const LENGTHS: [usize; 2] = [128, 14];
const ROUNDS: usize = 40;

/// Milliseconds on the clock and on the processor.
type Times = Vec<(f64, f64)>;

fn main() {
    memory();
    let mut arguments = std::env::args().skip(1);
    let mut reference = arguments
        .next()
        .map(|folder| Reference::start(&folder, &arguments.next().unwrap_or_else(|| "python3".into())));
    for length in LENGTHS {
        let ids: Vec<u16> =
            (0..length as u32 - 2).map(|number| (1_000 + number * 7_919 % 28_000) as u16).collect();
        let models: Vec<(Kernel, Deep)> = Kernel::ALL
            .into_iter()
            .filter(|kernel| kernel.is_available())
            .map(|kernel| (kernel, Deep::with_kernel(kernel)))
            .collect();
        let mut times: Vec<Times> = models.iter().map(|_| Vec::new()).collect();
        let (mut pairs, mut theirs) = (Times::new(), Times::new());
        for _ in 0..ROUNDS {
            for ((_, deep), times) in models.iter().zip(&mut times) {
                times.push(timed(|| drop(deep.encode_tokens(&[&ids]))));
            }
            if let Some((_, deep)) = models.last() {
                let (clock, processor) = timed(|| drop(deep.encode_tokens(&[ids.as_slice(); 16])));
                pairs.push((clock / 16.0, processor / 16.0));
            }
            if let Some(reference) = &mut reference {
                theirs.push(reference.round(length));
            }
        }
        for ((kernel, _), times) in models.iter().zip(times) {
            report(&format!("{kernel:?}, alone"), length, times);
        }
        report("fastest, 16 at once", length, pairs);
        if !theirs.is_empty() {
            report("reference.py", length, theirs);
        }
    }
}

/// Reports the memory that encoding takes, before anything else has been allocated.
fn memory() {
    let before = anonymous_memory();
    let report = |when: &str| println!("memory {when}: {:+.1} MB", anonymous_memory() - before);
    let deep = Deep::new();
    report("of a new model");
    let (_, first) = timed(|| drop(deep.encode_tokens(&[&[2_129; 12]])));
    report("after the first question");
    deep.encode_tokens(&[[2_129; 254].as_slice(); 16]);
    report("after 16 passages");
    deep.release();
    report("after the release");
    println!("first question, with unpacking: {first:.1} ms on the processor");
}

/// The memory of this process that is not part of a file, in MB; zero where the system does not say.
fn anonymous_memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() / 1024.0
}

fn timed(work: impl FnOnce()) -> (f64, f64) {
    let (clock, processor) = (Instant::now(), processor_time());
    work();
    (clock.elapsed().as_secs_f64() * 1e3, processor_time() - processor)
}

/// Milliseconds that this thread has spent on a processor.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a valid place, and the return value is checked.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "the thread has a clock");
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn report(what: &str, length: usize, mut times: Times) {
    let median = |pick: fn(&(f64, f64)) -> f64, times: &mut Times| {
        times.sort_by(|left, right| pick(left).total_cmp(&pick(right)));
        (pick(&times[0]), pick(&times[times.len() / 2]))
    };
    let (_, clock) = median(|time| time.0, &mut times);
    let (best, processor) = median(|time| time.1, &mut times);
    println!(
        "{length:4} tokens, {what:22} processor: best {best:6.2} ms, median {processor:6.2} ms, {:6.1} per second; \
         clock: median {clock:6.2} ms",
        1e3 / processor
    );
}

/// The reference implementation, which encodes one text for each line that it is sent.
struct Reference {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reference {
    fn start(folder: &str, python: &str) -> Self {
        const PROGRAM: &str = "
import sys, time
sys.path.insert(0, sys.argv[1])
import reference
model = reference.Deep(sys.argv[1])
for line in sys.stdin:
    ids = [1000 + number * 7919 % 28000 for number in range(int(line) - 2)]
    clock, processor = time.perf_counter(), time.thread_time()
    model.vec(ids)
    print((time.perf_counter() - clock) * 1e3, (time.thread_time() - processor) * 1e3, flush=True)
";
        let mut child = Command::new(python)
            .args(["-c", PROGRAM, folder])
            .envs(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the Python interpreter starts");
        let input = child.stdin.take().expect("standard input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        Self { child, input, output }
    }

    fn round(&mut self, length: usize) -> (f64, f64) {
        writeln!(self.input, "{length}").expect("the reference reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the reference answers");
        let mut numbers = line.split_whitespace().map(|number| number.parse().expect("a number"));
        (numbers.next().expect("the clock"), numbers.next().expect("the processor"))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
