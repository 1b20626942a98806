#include "pipeline/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace portico::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTwo[] = R"(
stages:
  - name: a
    factory_path: portico.mock
    stream_to: [b]
  - name: b
    factory_path: portico.encode
    terminal: true
)";

std::string WhyNot(const std::string& text, const Overrides& overrides = {}) {
  return std::string(ParsePipelineConfig(text, "p.yaml", overrides).status().message());
}

TEST(PipelineConfig, ReadsYamlAndJson) {
  const auto yaml = ParsePipelineConfig(kTwo, "p.yaml", {});
  ASSERT_TRUE(yaml.ok()) << yaml.status();
  EXPECT_EQ(yaml->entry_stage, "a");
  const auto json = ParsePipelineConfig(
      R"({"stages":[{"name":"a","factory_path":"portico.mock","terminal":true,
          "factory":{"chunks":3}}]})",
      "p.json", {});
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->stages[0].factory.GetInt("chunks", 0), 3);
}

TEST(PipelineConfig, RefusesUnknownKeysWithTheirLine) {
  EXPECT_THAT(WhyNot("stages:\n  - name: a\n    factory_path: portico.mock\n    nxt: b\n"),
              HasSubstr("p.yaml:4: unknown key `nxt`"));
  EXPECT_THAT(WhyNot("stages: []\nfoo: 1\n"), HasSubstr("p.yaml:2: unknown key `foo`"));
  EXPECT_THAT(WhyNot("stages:\n  - name: a\n    factory_path: x\n    gpu: 0\n    terminal: true\n"),
              HasSubstr("p.yaml:4: `gpu` is of stages of Python"));
}

// "a.b" could not be overridden, and "a/../b" was in the path of a profile.
TEST(PipelineConfig, RefusesNamesOfStagesThatArePaths) {
  for (const std::string name : {"a.b", "a/../b", "a b", "\xC3\xA4"}) {
    EXPECT_THAT(
        WhyNot("stages:\n  - {name: '" + name + "', factory_path: portico.mock, terminal: true}"),
        HasSubstr("a name has letters"));
  }
  EXPECT_EQ(WhyNot("stages:\n  - {name: talker_ar-2, factory_path: portico.mock, terminal: true}"),
            "");
}

TEST(PipelineConfig, RefusesGraphsThatCannotWork) {
  EXPECT_THAT(WhyNot("stages:\n  - {name: a, factory_path: x, next: b}\n"),
              HasSubstr("leads to `b`, which does not exist"));
  EXPECT_THAT(WhyNot("stages:\n  - {name: a, factory_path: x, next: b}\n"
                     "  - {name: b, factory_path: x, next: a}\n"),
              HasSubstr("cycle: a → b → a"));
  EXPECT_THAT(WhyNot("stages:\n  - {name: a, factory_path: x, terminal: true}\n"
                     "  - {name: b, factory_path: x, terminal: true}\n"),
              HasSubstr("cannot be reached"));
  EXPECT_THAT(WhyNot("stages:\n  - {name: a, factory_path: x}\n"), HasSubstr("needs either"));
  EXPECT_THAT(WhyNot("stages:\n  - {name: a, factory_path: x, next: [b, c]}\n"
                     "  - {name: b, factory_path: x, next: d}\n"
                     "  - {name: c, factory_path: x, next: d}\n"
                     "  - {name: d, factory_path: x, terminal: true}\n"),
              HasSubstr("merge_fn"));
  EXPECT_THAT(WhyNot("stages:\n  - {name: a, factory_path: x, terminal: true}\n"
                     "  - {name: a, factory_path: x, terminal: true}\n"),
              HasSubstr("exists twice"));
  EXPECT_THAT(WhyNot("stages: [{name: a, factory_path: x, terminal: true}]\n---\nstages: []\n"),
              HasSubstr(":3: a second document begins here"));
}

TEST(PipelineConfig, FunctionsOfPythonAreOfStagesOfPython) {
  const auto first = [](std::string_view said) {
    return "stages:\n  - {name: a, " + std::string(said) +
           "}\n  - {name: b, factory_path: m.f, terminal: true}\n";
  };
  const auto config = ParsePipelineConfig(
      first("factory_path: m.f, next: b, route_fn: m.route, project_payload: {b: m.part}"),
      "p.yaml", {});
  ASSERT_TRUE(config.ok()) << config.status();
  const std::vector<std::pair<std::string, std::string>> projected = {{"b", "m.part"}};
  EXPECT_EQ(config->stages[0].project_payload, projected);
  EXPECT_THAT(ResolvedConfig(*config, {}), HasSubstr("project_payload:\n      b: m.part\n"));

  EXPECT_THAT(WhyNot(first("factory_path: portico.pass, next: b, route_fn: m.route")),
              HasSubstr("has a route_fn `m.route` that does not exist"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, next: b, route_fn: portico.none")),
              HasSubstr("has a route_fn `portico.none` that does not exist"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, stream_to: b, route_fn: m.route")),
              HasSubstr("has a route_fn and no `next`"));
  EXPECT_THAT(WhyNot(first("factory_path: portico.pass, next: b, project_payload: {b: m.part}")),
              HasSubstr("is no stage of Python and takes no `project_payload`"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, next: b, project_payload: {c: m.part}")),
              HasSubstr("has a project_payload for `c`, which is not behind it"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, next: b, project_payload: {b: part}")),
              HasSubstr("no path of Python"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, next: b, project_payload: [b]")),
              HasSubstr("must be a mapping"));

  const auto joined = [](std::string_view kind, std::string_view merge) {
    return "stages:\n  - {name: a, factory_path: m.f, next: [b, c]}\n"
           "  - {name: b, factory_path: m.f, next: d}\n"
           "  - {name: c, factory_path: m.f, next: d}\n"
           "  - {name: d, factory_path: " +
           std::string(kind) + ", wait_for: [b, c], merge_fn: " + std::string(merge) +
           ", terminal: true}\n";
  };
  EXPECT_TRUE(ParsePipelineConfig(joined("m.f", "m.merge"), "p", {}).ok());
  EXPECT_THAT(WhyNot(joined("portico.merge", "m.merge")),
              HasSubstr("has a merge_fn `m.merge` that does not exist"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, next: b, wait_for_fn: m.w")),
              HasSubstr("has a wait_for_fn and no `wait_for`"));
  EXPECT_THAT(WhyNot(joined("portico.merge", "portico.in_order, wait_for_fn: m.w")),
              HasSubstr("is no stage of Python and takes no `wait_for_fn`"));
  EXPECT_THAT(WhyNot(joined("m.f", "m.merge, wait_for_fn: w")),
              HasSubstr("has a wait_for_fn `w`, which is no path of Python"));
  EXPECT_THAT(WhyNot(first("factory_path: m.f, next: b, stream_done_to_fn: m.t")),
              HasSubstr("has a stream_done_to_fn and no `stream_to`"));
  EXPECT_THAT(WhyNot(first("factory_path: portico.pass, stream_to: b, stream_done_to_fn: m.t")),
              HasSubstr("is no stage of Python and takes no `stream_done_to_fn`"));
  const auto chosen = ParsePipelineConfig(joined("m.f", "m.merge, wait_for_fn: m.w"), "p", {});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->stages[3].wait_for_fn, "m.w");
  const auto told = ParsePipelineConfig(
      first("factory_path: m.f, stream_to: b, stream_done_to_fn: m.t"), "p", {});
  ASSERT_TRUE(told.ok()) << told.status();
  const auto again = ParsePipelineConfig(ResolvedConfig(*told, {}), "p", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->stages[0].stream_done_to_fn, "m.t");
}

TEST(PipelineConfig, OnlyAStreamGoesBackToAStageBeforeIt) {
  const auto loop = [](std::string_view kind, std::string_view back) {
    return "stages:\n  - {name: a, factory_path: " + std::string(kind) +
           ", next: c, stream_to: b}\n  - {name: b, factory_path: m.f, " + std::string(back) +
           "}\n  - {name: c, factory_path: portico.pass, terminal: true}\n";
  };
  const auto config = ParsePipelineConfig(loop("m.f", "stream_to: a"), "p.yaml", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->stages[1].feeds_back, std::vector<std::string>{"a"});
  EXPECT_EQ(config->stages[0].fed_by, std::vector<std::string>{"b"});
  EXPECT_TRUE(config->stages[0].feeds_back.empty());
  EXPECT_THAT(GraphText(*config), HasSubstr("→ a (stream, back)"));
  EXPECT_THAT(WhyNot(loop("m.f", "next: a")),
              HasSubstr("p.yaml:3: stage `b` is in a cycle: a → b → a"));
  EXPECT_THAT(WhyNot(loop("m.f", "next: a, stream_to: a")), HasSubstr("is in a cycle"));
  EXPECT_THAT(WhyNot(loop("m.f", "stream_to: [a, b]")), HasSubstr("is in a cycle: a → b → b"));
  EXPECT_THAT(WhyNot(loop("portico.pass", "stream_to: a")),
              HasSubstr("streams back to `a`, which is no stage of Python"));
}

TEST(PipelineConfig, StreamsBesideWhatAStageWaitsForAreToldApart) {
  const auto graph = [](std::string_view b, std::string_view c, std::string_view d) {
    return "stages:\n  - {name: a, factory_path: x, next: [b, c]}\n"
           "  - {name: b, factory_path: x, " +
           std::string(b) + "}\n  - {name: c, factory_path: x, " + std::string(c) +
           "}\n  - {name: d, factory_path: x, terminal: true" + std::string(d) + "}\n";
  };
  const std::string early = ", can_accept_stream_before_payload: true";
  EXPECT_EQ(WhyNot(graph("next: d", "stream_to: d", "")), "");
  const auto config = ParsePipelineConfig(graph("next: d", "stream_to: d", early), "p.yaml", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->stages[3].accepts_early);
  EXPECT_THAT(ResolvedConfig(*config, {}), HasSubstr("can_accept_stream_before_payload: true"));
  EXPECT_THAT(WhyNot(graph("stream_to: d", "stream_to: d", "")), HasSubstr("merge_fn"));
  EXPECT_THAT(WhyNot(graph("next: d", "next: d", ", wait_for: b, merge_fn: portico.in_order")),
              HasSubstr("gets by `next` what `c` sends, which is not in its `wait_for`"));
  EXPECT_THAT(
      WhyNot(graph("next: d", "stream_to: d", ", wait_for: [a, b], merge_fn: portico.in_order")),
      HasSubstr("waits for `a`, which does not lead to it"));
  EXPECT_THAT(WhyNot(graph("next: d", "next: d", early)), HasSubstr("has it in its `stream_to`"));
  EXPECT_THAT(WhyNot(graph("next: d", "stream_to: d", ", can_accept_stream_before_payload: maybe")),
              HasSubstr("p.yaml:5: `can_accept_stream_before_payload` must be true or false"));
}

TEST(PipelineConfig, ReadsProcessesAndReplicas) {
  const std::string text =
      "processes: {voice: {num_replicas: 3}}\nstages:\n"
      "  - {name: a, factory_path: portico.pass, process: voice, replay: false, next: b}\n"
      "  - {name: b, factory_path: mine.shout, python: /opt/python, env: {A: x}, terminal: true}\n";
  const auto config = ParsePipelineConfig(text, "p.yaml", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ReplicasOf("voice"), 3);
  EXPECT_FALSE(config->stages[0].replay);
  EXPECT_EQ(config->stages[1].process, "b");
  EXPECT_TRUE(config->stages[1].is_python());
  const auto again = ParsePipelineConfig(ResolvedConfig(*config, {}), "p.yaml", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->stages[1].env, config->stages[1].env);
  EXPECT_EQ(again->ReplicasOf("voice"), 3);
}

TEST(PipelineConfig, FusedStagesShareAProcess) {
  const auto three = [](std::string_view groups, std::string_view c = "") {
    return "fused_stages: " + std::string(groups) +
           "\nstages:\n  - {name: a, factory_path: m.f, next: b}\n"
           "  - {name: b, factory_path: m.f, next: c}\n"
           "  - {name: c, factory_path: m.f, terminal: true" +
           std::string(c) + "}\n";
  };
  const auto config = ParsePipelineConfig(three("[[a, b]]"), "p.yaml", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->stages[1].process, "a");
  EXPECT_EQ(config->stages[2].process, "c");
  const auto again = ParsePipelineConfig(ResolvedConfig(*config, {}), "p.yaml", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->fused_stages, config->fused_stages);
  const auto named = ParsePipelineConfig(three("[[a, b, c]]", ", process: own"), "p.yaml", {});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->stages[0].process, "own");

  EXPECT_THAT(WhyNot(three("[[a]]")),
              HasSubstr("p.yaml:1: a group of `fused_stages` must list two"));
  EXPECT_THAT(WhyNot(three("[a, b]")), HasSubstr("must list two"));
  EXPECT_THAT(WhyNot(three("[[a, d]]")), HasSubstr("there is no stage `d`"));
  EXPECT_THAT(WhyNot(three("[[a, c]]")), HasSubstr("`a` does not lead to `c`"));
  EXPECT_THAT(WhyNot(three("[[a, b], [b, c]]")), HasSubstr("has `b` twice"));
  EXPECT_THAT(WhyNot("fused_stages: [[a, b]]\nstages:\n"
                     "  - {name: a, factory_path: m.f, process: p, next: b}\n"
                     "  - {name: b, factory_path: m.f, process: q, terminal: true}\n"),
              HasSubstr("`b` has another `process`"));
  EXPECT_THAT(WhyNot("fused_stages: [[a, b]]\nstages:\n"
                     "  - {name: a, factory_path: m.f, next: b}\n"
                     "  - {name: b, factory_path: portico.pass, terminal: true}\n"),
              HasSubstr("cannot share"));
}

TEST(PipelineConfig, RefusesProcessesThatCannotWork) {
  const auto two = [](std::string_view a, std::string_view b) {
    return WhyNot("stages:\n  - {name: a, process: p, next: b, " + std::string(a) +
                  "}\n  - {name: b, process: p, terminal: true, " + std::string(b) + "}\n");
  };
  EXPECT_THAT(two("factory_path: portico.pass", "factory_path: m.f"), HasSubstr("cannot share"));
  EXPECT_THAT(two("factory_path: portico.pass", "factory_path: portico.engine"),
              HasSubstr("drop `process`"));
  EXPECT_THAT(two("factory_path: m.f", "factory_path: m.f, python: x"), HasSubstr("cannot share"));
  EXPECT_THAT(two("factory_path: portico.pass, env: {A: b}", "factory_path: portico.pass"),
              HasSubstr("no stage of Python"));
  EXPECT_THAT(WhyNot(std::string("processes: {q: {num_replicas: 2}}") + kTwo),
              HasSubstr("no stage runs in the process `q`"));
}

TEST(PipelineConfig, ReadsWhereProcessesOfOtherHostsAre) {
  const std::string stages =
      "\nstages:\n  - {name: a, factory_path: portico.pass, process: p, next: b}\n"
      "  - {name: b, factory_path: portico.encode, terminal: true}\n";
  const auto config = ParsePipelineConfig(
      "processes: {p: {host: ['10.0.0.2:7000', '[fd00::2]:7000'], tls: true}}" + stages, "p.yaml",
      {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ReplicasOf("p"), 2);
  const auto again = ParsePipelineConfig(ResolvedConfig(*config, {}), "p.yaml", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->FindProcess("p")->hosts, config->FindProcess("p")->hosts);
  EXPECT_TRUE(again->FindProcess("p")->tls);
  for (const char* host :
       {"gpu2", "gpu2:", ":7000", "gpu2:x", "a b:1", "gpu2:70000", "fd00::2:1"}) {
    EXPECT_THAT(WhyNot("processes: {p: {host: '" + std::string(host) + "'}}" + stages),
                HasSubstr("is not an address and port"))
        << host;
  }
  EXPECT_THAT(WhyNot("processes: {p: {tls: true}}" + stages), HasSubstr("with a `host`"));
  EXPECT_THAT(WhyNot("processes: {p: {host: 'g:1', tls_ca: x}}" + stages), HasSubstr("tls: true"));
  EXPECT_THAT(WhyNot("processes: {p: {host: ['g:1', 'h:1'], num_replicas: 1}}" + stages),
              HasSubstr("less than there are hosts"));
}

TEST(PipelineConfig, TakesDottedOverrides) {
  const auto config = ParsePipelineConfig(kTwo, "p.yaml", {{"a.factory.chunks", "7"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->stages[0].factory.GetInt("chunks", 0), 7);
  EXPECT_THAT(ResolvedConfig(*config, {{"a.factory.chunks", "7"}}),
              HasSubstr("factory: {\"chunks\":7}  # from the command line"));
  const auto slow = ParsePipelineConfig(kTwo, "p.yaml", {{"timeout_s", "60"}, {"voices.x", "slt"}});
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_EQ(slow->timeout_s, 60);
  EXPECT_EQ(slow->voices.size(), 1U);
  EXPECT_THAT(WhyNot(kTwo, {{"c.factory.chunks", "7"}}), HasSubstr("there is no stage `c`"));
  EXPECT_THAT(WhyNot(kTwo, {{"a.factory.x", "7"}, {"a.factory.x", "8"}}), HasSubstr("given twice"));
}

// They were told at a line of the file, or at line 0.
TEST(PipelineConfig, NamesTheFlagThatHasSetAWrongValue) {
  EXPECT_THAT(WhyNot(kTwo, {{"a.voice", "x"}}), StartsWith("--a.voice: unknown key `voice`;"));
  EXPECT_THAT(WhyNot(kTwo, {{"a.x.y", "1"}}), StartsWith("--a.x.y: unknown key `x`"));
  EXPECT_THAT(WhyNot(kTwo, {{"max_in_flight", "9"}, {"timeout_s", "x"}}),
              StartsWith("--timeout_s: `timeout_s` must be a number"));
  EXPECT_THAT(WhyNot(kTwo, {{"a.stream_to", "[b, [c]]"}}),
              StartsWith("--a.stream_to: `stream_to` must list names"));
  EXPECT_THAT(WhyNot(kTwo, {{"processes.p.num_replicas", "100"}}),
              StartsWith("--processes.p.num_replicas: `num_replicas` must be"));
  EXPECT_THAT(WhyNot(kTwo, {{"processes.p.tls", "true"}}), StartsWith("--processes.p.tls: `tls`"));
  EXPECT_THAT(WhyNot(kTwo, {{"a.tp_size", "2"}}), StartsWith("--a.tp_size: "));
  EXPECT_THAT(WhyNot(kTwo, {{"processes", "{p: {foo: 1}}"}}), StartsWith("--processes: "));
  EXPECT_THAT(WhyNot(kTwo, {{"a.next", "[c]"}}),
              AllOf(StartsWith("p.yaml:3: stage `a` leads to `c`"), EndsWith(" (with --a.next)")));
  // Where the file is at fault, its line is told all the same.
  EXPECT_THAT(WhyNot(std::string(kTwo) + "timeout_s: x\n", {{"a.max_queued", "1"}}),
              StartsWith("p.yaml:9: `timeout_s`"));
  EXPECT_THAT(WhyNot(std::string(kTwo) + "foo: 1\n", {{"a.max_queued", "1"}}),
              StartsWith("p.yaml:9: unknown key `foo`"));
}

// The program crashed, or computed without an end.
TEST(PipelineConfig, RefusesAliasesThatContainThemselvesOrMakeMuchOfLittle) {
  EXPECT_THAT(WhyNot(kTwo, {{"a.factory", "&f {k: *f}"}}),
              StartsWith("--a.factory: values are nested more than 64 deep"));
  EXPECT_THAT(WhyNot(kTwo, {{"a.stream_to", "&f [*f, *f]"}}),
              StartsWith("--a.stream_to: `stream_to` must list names"));
  EXPECT_THAT(WhyNot(kTwo, {{"voices.x", "&f [*f, *f]"}, {"b.terminal", "x"}}),
              StartsWith("--b.terminal: `terminal` must be true or false"));
  // All of its ways have the same names.
  std::string same = "&f {k: *f";
  for (int i = 1; i < 100; ++i) same += ", k: *f";
  EXPECT_THAT(WhyNot(kTwo, {{"voices.x", same + "}"}, {"b.terminal", "x"}}),
              StartsWith("--b.terminal: `terminal` must be true or false"));
  std::string many = "{a0: &a0 {x: 1}";
  for (int i = 1; i < 40; ++i) {
    many += ", a" + std::to_string(i) + ": &a" + std::to_string(i);
    many += " {x: *a" + std::to_string(i - 1) + ", y: *a" + std::to_string(i - 1) + "}";
  }
  EXPECT_THAT(WhyNot(kTwo, {{"a.factory", many + "}"}}), HasSubstr("more than 100000 values"));
}

// The graph is walked by a call for each stage behind another.
TEST(PipelineConfig, RefusesMoreStagesThanItWalks) {
  const auto chain = [](int stages) {
    std::string text = "stages:\n";
    for (int i = 1; i < stages; ++i) {
      text += "  - {name: s" + std::to_string(i) + ", factory_path: portico.mock, next: s" +
              std::to_string(i + 1) + "}\n";
    }
    return text + "  - {name: s" + std::to_string(stages) +
           ", factory_path: portico.mock, terminal: true}\n";
  };
  EXPECT_EQ(WhyNot(chain(100)), "");
  EXPECT_THAT(WhyNot(chain(1001)), HasSubstr("at most 1000 stages"));
}

TEST(PipelineConfig, TakesOverridesOfReplicasWithAndWithoutThemInTheFile) {
  const std::string stages =
      "stages:\n  - {name: a, factory_path: portico.encode, process: voice, terminal: true}\n";
  for (const char* head : {"", "processes: {voice: {num_replicas: 2}}\n"}) {
    const auto config =
        ParsePipelineConfig(head + stages, "p.yaml", {{"processes.voice.num_replicas", "3"}});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->ReplicasOf("voice"), 3);
  }
}

TEST(PipelineConfig, ExplainsWhetherAValueIsFromTheFileTheCommandLineOrNobody) {
  const std::string text =
      "timeout_s: 5\nstages:\n  - name: a\n    factory_path: portico.mock\n"
      "    factory:\n      chunks: 3\n    terminal: true\n";
  const Overrides overrides = {{"max_in_flight", "9"}};
  const auto config = ParsePipelineConfig(text, "p.yaml", overrides);
  ASSERT_TRUE(config.ok()) << config.status();
  const auto explained = [&](std::string_view path) {
    return ExplainValue(*config, path, overrides).value_or("");
  };
  EXPECT_EQ(explained("a.factory.chunks"), "a.factory.chunks: 3\nfrom p.yaml:6\n");
  EXPECT_EQ(explained("timeout_s"), "timeout_s: 5\nfrom p.yaml:1\n");
  EXPECT_EQ(explained("a.max_queued"), "a.max_queued: 64\nthe default\n");
  EXPECT_EQ(explained("max_in_flight"), "max_in_flight: 9\nfrom the command line\n");
  EXPECT_EQ(explained("entry_stage"), "entry_stage: a\nthe default\n");
  const Overrides whole = {{"a.factory", "{chunks: 4}"}};
  const auto changed = ParsePipelineConfig(text, "p.yaml", whole);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(ExplainValue(*changed, "a.factory.chunks", whole).value_or(""),
            "a.factory.chunks: 4\nfrom the command line\n");
}

}  // namespace
}  // namespace portico::pipeline
