//! Charts: the calls of the last hour, one small picture for each tool, all with the same time axis.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::ask;
use crate::{Host, fields::Fields, words};

/// Tools that have a chart, the busiest first.
const TOOLS: usize = 12;
/// The size of a chart.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 40.0;

/// Calls per minute, errors and durations by tool, of one family when it is named. Nothing for whoever may not see that.
pub(super) fn calls(host: &dyn Host, family: &str) -> Markup {
    if !host.may("call_statistics") {
        return html! {};
    }
    let Ok(found) = ask(host, "call_statistics", json!({})) else { return html! {} };
    let fits = |tool: &&Value| family.is_empty() || tool.text("family") == family;
    let mut tools: Vec<&Value> = found.list("tools").iter().filter(fits).collect();
    if tools.is_empty() {
        return html! {};
    }
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.number("calls")));
    let minutes = found.number("minutes").max(1);
    let calls: u64 = tools.iter().map(|tool| tool.number("calls")).sum();
    let errors: u64 = tools.iter().map(|tool| tool.number("errors")).sum();
    html! {
        details.calls open { summary { h2 { "Calls of the last hour" } span.note { (words::counted(calls, "call", "calls")) ", " (words::counted(errors, "error", "errors")) } }
            div.multiples { @for tool in tools.iter().take(TOOLS) { (chart(tool, minutes)) } }
            @if tools.len() > TOOLS { p.note { "And " (words::counted((tools.len() - TOOLS) as u64, "other tool", "other tools")) "." } }
        }
    }
}

fn milliseconds(tool: &Value, name: &str) -> String {
    let value = tool.get(name).and_then(Value::as_f64).unwrap_or_default();
    if value < 10.0 { format!("{value:.1} ms") } else { format!("{value:.0} ms") }
}

/// One tool: a bar for each minute, the failed calls in it in another colour; hovering reads the values.
fn chart(tool: &Value, minutes: u64) -> Markup {
    let series = tool.list("series");
    let most = series.iter().map(|minute| minute.number("calls")).max().unwrap_or(1).max(1) as f64;
    let step = WIDTH / minutes as f64;
    let height = |count: u64| (count as f64 / most * (HEIGHT - 2.0)).max(if count > 0 { 1.5 } else { 0.0 });
    let number = |value: f64| format!("{value:.1}");
    let label = format!(
        "{}: {}, {}, {} on average",
        tool.text("tool"),
        words::counted(tool.number("calls"), "call", "calls"),
        words::counted(tool.number("errors"), "error", "errors"),
        milliseconds(tool, "mean_ms")
    );
    html! {
        figure.multiple {
            figcaption { code { (tool.text("tool")) } span.figure { (words::count(tool.number("calls"))) } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                line.axis x1="0" y1=(number(HEIGHT)) x2=(number(WIDTH)) y2=(number(HEIGHT)) {}
                @for minute in series {
                    @let x = minute.number("minute") as f64 * step;
                    @let (whole, failed) = (height(minute.number("calls")), height(minute.number("errors")));
                    g {
                        title { (minutes_ago(minutes, minute.number("minute"))) ": " (words::counted(minute.number("calls"), "call", "calls")) ", " (words::counted(minute.number("errors"), "error", "errors")) ", " (milliseconds(minute, "mean_ms")) }
                        rect.hover x=(number(x)) y="0" width=(number(step)) height=(number(HEIGHT)) {}
                        rect.minute x=(number(x)) y=(number(HEIGHT - whole)) width=(number((step - 0.6).max(0.6))) height=(number(whole)) {}
                        @if failed > 0.0 { rect.failed x=(number(x)) y=(number(HEIGHT - failed)) width=(number((step - 0.6).max(0.6))) height=(number(failed)) {} }
                    }
                }
            }
            p.note.scale { span { (minutes) " min ago" } span { "now" } }
            p.note { (milliseconds(tool, "mean_ms")) " · longest " (milliseconds(tool, "longest_ms"))
                @if tool.number("errors") > 0 { " · " span.bad { (words::counted(tool.number("errors"), "error", "errors")) } } }
        }
    }
}

fn minutes_ago(minutes: u64, minute: u64) -> String {
    match minutes.saturating_sub(minute + 1) {
        0 => "this minute".to_owned(),
        ago => format!("{ago} min ago"),
    }
}
