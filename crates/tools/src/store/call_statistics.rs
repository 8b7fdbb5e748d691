//! `call_statistics`: how often tools were called, and how long that took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_base::Moment;

use crate::{
    Family, Hints, Tool, arguments,
    meter::{MINUTES, Minute, minute_of},
    policy::{Access, Audience},
    registry::{find, reply},
    schema,
};

const MINUTE_MICROS: i64 = 60_000_000;

pub(crate) const TOOL: Tool = Tool {
    name: "call_statistics",
    title: "Calls of the last hour",
    description: "Tell how often each tool was called in the last hour, how many calls failed and how long they took, \
                  minute by minute, of all callers of this server, and which tools have a limit. Use activity for what \
                  was changed. For administrators.",
    family: Family::Store,
    audience: Audience::Administrators,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: "{}",
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let Arguments {} = arguments::read(arguments)?;
        let now = context.library.now();
        let first = minute_of(now) - MINUTES + 1;
        let tools = context
            .limits
            .meter
            .read(now)
            .into_iter()
            .map(|(name, minutes)| ToolView::of(name, &minutes, first));
        let limits = context.limits.listed().into_iter();
        let limits = limits.map(|(tool, per_minute)| LimitView { tool: tool.to_owned(), per_minute });
        reply(&Reply {
            from: Moment::from_micros(first * MINUTE_MICROS).to_string(),
            minutes: MINUTES as u64,
            tools: tools.collect(),
            limits: limits.collect(),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// When the first minute began
    from: String,
    /// Number of minutes, the present one included
    minutes: u64,
    /// Tools that were called, by name
    tools: Vec<ToolView>,
    /// Tools that one identity may call only so often
    limits: Vec<LimitView>,
}

#[derive(Serialize, JsonSchema)]
struct LimitView {
    /// Name of the tool
    tool: String,
    /// Calls per minute
    per_minute: u32,
}

#[derive(Serialize, JsonSchema)]
struct ToolView {
    /// Name of the tool
    tool: String,
    /// Its family
    family: String,
    /// Number of calls
    calls: u64,
    /// Number of calls that failed
    errors: u64,
    /// Mean duration in milliseconds
    mean_ms: f64,
    /// Longest duration in milliseconds
    longest_ms: f64,
    /// The minutes in which it was called
    series: Vec<MinuteView>,
}

#[derive(Serialize, JsonSchema)]
struct MinuteView {
    /// Which minute, from 0
    minute: u64,
    /// Number of calls
    calls: u64,
    /// Number of calls that failed
    errors: u64,
    /// Mean duration in milliseconds
    mean_ms: f64,
}

impl ToolView {
    fn of(name: &str, minutes: &[Minute], first: i64) -> Self {
        let calls = minutes.iter().map(|one| one.calls).sum();
        let total: f64 = minutes.iter().map(|one| one.total.as_secs_f64()).sum();
        let longest = minutes.iter().map(|one| one.longest.as_secs_f64()).fold(0.0, f64::max);
        Self {
            tool: name.to_owned(),
            family: find(name).map_or("", |tool| tool.family.word()).to_owned(),
            calls,
            errors: minutes.iter().map(|one| one.errors).sum(),
            mean_ms: milliseconds(total, calls),
            longest_ms: milliseconds(longest, 1),
            series: minutes
                .iter()
                .map(|one| MinuteView {
                    minute: u64::try_from(one.minute - first).unwrap_or(0),
                    calls: one.calls,
                    errors: one.errors,
                    mean_ms: milliseconds(one.total.as_secs_f64(), one.calls),
                })
                .collect(),
        }
    }
}

/// Milliseconds a call, to a hundredth.
fn milliseconds(seconds: f64, calls: u64) -> f64 {
    (seconds * 100_000.0 / calls.max(1) as f64).round() / 100.0
}
