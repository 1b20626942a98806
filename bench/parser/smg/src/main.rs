// The lines of ../worker.cc, answered by smg's crates as its gateway uses them: reasoning first, then calls.
use std::io::{BufRead, Write};

use openai_protocol::common::Tool;
use serde_json::{json, Value};

fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[derive(Default)]
struct Counts {
    content: usize,
    reasoning: usize,
    arguments: usize,
    names: Vec<String>,
}

impl Counts {
    fn take(&mut self, calls: Vec<tool_parser::types::ToolCallItem>) {
        for call in calls {
            self.arguments += call.parameters.len();
            if let Some(name) = call.name {
                self.names.push(name);
            }
        }
    }
}

async fn answer(request: &Value) -> Value {
    let tools: Vec<Tool> = serde_json::from_value(request["tools"].clone()).unwrap();
    let chunks: Vec<String> = serde_json::from_value(request["chunks"].clone()).unwrap();
    let name = request["tool_call_parser"].as_str().unwrap_or("");
    let reasoner = request["reasoning_parser"].as_str().unwrap_or("");
    let inside = request["in_reasoning"].as_bool().unwrap_or(false);
    let passes = request["passes"].as_i64().unwrap_or(1);
    let tool_factory = tool_parser::ParserFactory::new();
    let reasoning_factory = reasoning_parser::ParserFactory::new();
    let mut counts = Counts::default();
    let start = now();
    for _ in 0..passes {
        counts = Counts::default();
        let mut calls = tool_factory.registry().create_parser(name);
        let mut reasoning = reasoning_factory.registry().create_parser(reasoner);
        if !name.is_empty() && calls.is_none() || !reasoner.is_empty() && reasoning.is_none() {
            return json!({"error": "no parser"});
        }
        if let (Some(parser), true) = (&mut reasoning, inside) {
            parser.mark_reasoning_started();
            parser.mark_think_start_stripped();
        }
        for chunk in &chunks {
            let split;
            let mut text: &str = chunk;
            if let Some(parser) = &mut reasoning {
                split = match parser.parse_reasoning_streaming_incremental(chunk) {
                    Ok(split) => split,
                    Err(error) => return json!({"error": error.to_string()}),
                };
                counts.reasoning += split.reasoning_text.len();
                text = &split.normal_text;
            }
            if text.is_empty() {
                continue;
            }
            match &mut calls {
                Some(parser) => match parser.parse_incremental(text, &tools).await {
                    Ok(result) => {
                        counts.content += result.normal_text.len();
                        counts.take(result.calls);
                    }
                    Err(error) => return json!({"error": error.to_string()}),
                },
                None => counts.content += text.len(),
            }
        }
        if let Some(parser) = &mut calls {
            counts.take(parser.get_unstreamed_tool_args().unwrap_or_default());
            counts.content += parser.take_unstreamed_normal_text().len();
        }
    }
    json!({"ns": (now() - start) / passes, "content": counts.content, "reasoning": counts.reasoning,
           "arguments": counts.arguments, "names": counts.names})
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        writeln!(out, "{}", runtime.block_on(answer(&request))).unwrap();
        out.flush().unwrap();
    }
}
