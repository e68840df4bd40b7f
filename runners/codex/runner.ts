import { z } from 'zod';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import { modelFailure, type TurnRecord } from '../../src/harness/turn-record.ts';
import type { McpServer } from '../../src/suite/mcp-server.ts';
import { cliRunner, scriptOfShell, serverPatience } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** Not OPENAI_API_KEY: with that variable, Codex would also look for an account. */
const keyVariable = 'OFFSITE_MODEL_KEY';

/**
 * OpenAI's Codex CLI. Settings are arguments, so that a `~/.codex/config.toml` of the profile keeps its other
 * settings.
 */
export const codex = cliRunner({
  name: 'codex',
  label: 'Codex CLI',
  cli: versions.codex,
  wires: ['openai-responses'],
  continues: true,
  mcp: ['stdio', 'http'],
  skillsFolder: '~/.agents/skills',
  limits: [],
  stream: { takerFor: codexLines },
  usageIsCumulative: true,
  launch({ profile }, { name, origin, token, contextWindow }) {
    const settings = {
      model: name,
      model_provider: 'offsite',
      'model_providers.offsite.name': 'offsite',
      'model_providers.offsite.base_url': `${origin}/v1`,
      'model_providers.offsite.env_key': keyVariable,
      'model_providers.offsite.wire_api': 'responses',
      // The gateway retries, and it knows better when.
      'model_providers.offsite.request_max_retries': 0,
      'model_providers.offsite.stream_max_retries': 0,
      // The search runs at the model's provider, outside the sandbox.
      web_search: 'disabled',
      check_for_update_on_startup: false,
      'analytics.enabled': false,
      ...(contextWindow !== undefined && { model_context_window: contextWindow }),
    };
    const tables = Object.entries(profile.mcpServers).map(([name, server]) => serverTable(name, server));
    const path = '~/.codex/config.toml';
    return {
      argv: (sessionId) => [
        programPath(versions.codex),
        'exec',
        '--json',
        '--skip-git-repo-check',
        '--dangerously-bypass-approvals-and-sandbox',
        // Codex looks for plugins on the network.
        '--disable',
        'plugins',
        ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${JSON.stringify(value)}`]),
        ...profile.args,
        ...(sessionId === undefined ? [] : ['resume', sessionId]),
        // Read the prompt from stdin.
        '-',
      ],
      access: { [keyVariable]: token },
      files: tables.length === 0 ? [] : [{ path, content: tables.join('\n'), existing: 'appended-to' }],
    };
  },
});

/** The server as a TOML table. TOML strings and arrays of strings are written as in JSON. */
function serverTable(name: string, server: McpServer): string {
  // Without these two, Codex waits 10 s, goes on without the server's tools, and says nothing.
  const whether = `required = true\nstartup_timeout_sec = ${serverPatience / 1000}\n`;
  const heading = `[mcp_servers.${name}]\n${whether}`;
  if ('url' in server) {
    const url = `url = ${JSON.stringify(server.url)}`;
    return `${heading}${url}\nhttp_headers = ${inlineTable(server.headers ?? {})}\n`;
  }
  return [
    `${heading}command = ${JSON.stringify(server.command)}`,
    `args = ${JSON.stringify(server.args)}`,
    `env = ${inlineTable(server.env)}`,
    '',
  ].join('\n');
}

function inlineTable(texts: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(texts).map(
    ([key, value]) => `${JSON.stringify(key)} = ${JSON.stringify(value)}`,
  );
  return `{ ${pairs.join(', ')} }`;
}

const Thread = z.object({ thread_id: z.string() });
const Item = z.looseObject({ id: z.string(), type: z.string(), status: z.string().optional() });
const Command = z.object({
  command: z.string(),
  aggregated_output: z.string(),
  exit_code: z.number().nullish(),
});
const Spoken = z.object({ text: z.string() });
const ErrorItem = z.object({ message: z.string() });
const McpCall = z.looseObject({ server: z.string(), tool: z.string(), arguments: z.unknown().optional() });
const Completed = z.object({
  usage: z.object({
    input_tokens: z.number(),
    cached_input_tokens: z.number().optional(),
    cache_write_input_tokens: z.number().optional(),
    output_tokens: z.number(),
  }),
});
const Failed = z.object({ error: z.object({ message: z.string() }) });

/**
 * Reads `codex exec --json`: `thread.started`, `turn.started`, `item.started` and `item.completed`,
 * `turn.completed` or `turn.failed`. It reports exit codes but no times.
 */
function codexLines(record: TurnRecord): LineTaker {
  return (line, at) => {
    switch (line.type) {
      case 'thread.started':
        return record.begin(Thread.parse(line).thread_id);
      case 'item.started':
        return begin(record, line.item, at);
      case 'item.completed':
        return complete(record, line.item, at);
      case 'error':
        return record.note(ErrorItem.parse(line).message, at);
      case 'turn.completed':
        record.usage = usageOf(Completed.parse(line).usage);
        record.status = { kind: 'done' };
        return;
      case 'turn.failed':
        record.status = modelFailure(Failed.parse(line).error.message);
    }
  };
}

/** Items of these types have only a completion. */
const withoutBeginning = new Set(['agent_message', 'reasoning', 'error', 'todo_list']);

function begin(record: TurnRecord, source: unknown, at: number | undefined): void {
  const item = Item.parse(source);
  if (item.type === 'command_execution') {
    record.beginCommand(item.id, innerCommand(Command.parse(item).command), at);
  } else if (!withoutBeginning.has(item.type)) {
    const { id, type, status: _, ...rest } = item;
    const call = type === 'mcp_tool_call' ? McpCall.parse(item) : undefined;
    record.beginTool(id, call ? `${call.server}.${call.tool}` : type, call ? call.arguments : rest, at);
  }
}

function complete(record: TurnRecord, source: unknown, at: number): void {
  const item = Item.parse(source);
  switch (item.type) {
    case 'command_execution': {
      const { exit_code, aggregated_output } = Command.parse(item);
      if (record.openCommand(item.id) === undefined) begin(record, item, undefined);
      record.endCommand(item.id, { at, exitCode: exit_code ?? undefined, output: aggregated_output });
      break;
    }
    case 'agent_message':
      record.message(Spoken.parse(item).text, at);
      break;
    // A warning, for example about a model that Codex does not know. The turn continues.
    case 'error':
      record.note(ErrorItem.parse(item).message, at);
      break;
    case 'reasoning':
    case 'todo_list':
      break;
    default:
      if (!record.toolIsOpen(item.id)) begin(record, item, undefined);
      record.endTool(item.id, {
        at,
        output: item.result === undefined ? undefined : JSON.stringify(item.result),
        failed: item.status === 'failed',
      });
  }
}

function usageOf(usage: z.infer<typeof Completed>['usage']): TurnRecord['usage'] {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.input_tokens + usage.output_tokens,
    ...(usage.cached_input_tokens !== undefined && { cacheReadTokens: usage.cached_input_tokens }),
    ...(usage.cache_write_input_tokens !== undefined && { cacheWriteTokens: usage.cache_write_input_tokens }),
  };
}

/**
 * Returns the model's command from what Codex shows: `/bin/bash -lc 'COMMAND'`, quoted for a shell. A text of
 * another form is returned unchanged.
 */
export function innerCommand(shown: string): string {
  const words = shellWords(shown);
  return (words?.length === 3 ? scriptOfShell(words) : undefined) ?? shown;
}

/**
 * Splits a line into words by the shell's quoting rules, without other shell syntax. Undefined if a quote is
 * not closed.
 */
function shellWords(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < line.length) {
    const character = line.charAt(at);
    if (character === "'") {
      const end = line.indexOf("'", at + 1);
      if (end === -1) return undefined;
      word = (word ?? '') + line.slice(at + 1, end);
      at = end + 1;
    } else if (character === '"') {
      const quote = doubleQuoted(line, at + 1);
      if (quote === undefined) return undefined;
      word = (word ?? '') + quote.text;
      at = quote.end;
    } else if (character === '\\') {
      word = (word ?? '') + line.charAt(at + 1);
      at += 2;
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
    } else {
      word = (word ?? '') + character;
      at += 1;
    }
  }
  return word === undefined ? words : [...words, word];
}

/** The text between double quotes from `start`, and the position after the closing quote. */
function doubleQuoted(line: string, start: number): { text: string; end: number } | undefined {
  const [whole, inside] = /((?:[^"\\]|\\[\s\S])*)"/y.exec(line.slice(start)) ?? [];
  if (whole === undefined || inside === undefined) return undefined;
  // Before any other character, a backslash is literal.
  return {
    text: inside.replace(/\\([$`"\\\n])/g, (_, next) => (next === '\n' ? '' : next)),
    end: start + whole.length,
  };
}
