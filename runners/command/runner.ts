import { mcpEntry } from '../../src/harness/mcp-entry.ts';
import type { CommandSource, HarnessContext, ModelAccess, Runner } from '../../src/harness/runner.ts';
import { streams } from '../streams.ts';
import { jsonlStream } from './jsonl.ts';
import { scriptTurn } from './script-turn.ts';
import { streamTurn } from './stream-turn.ts';

const readers = { ...streams, jsonl: jsonlStream };

/**
 * Runs any program as a harness: the profile's `run` script. If the profile names no `stream`, each command of
 * the script is a command of the trial. The exit code is that of the last command.
 */
export const command: Runner = {
  name: 'command',
  label: 'Command (a profile with a run script)',
  wires: [],
  tellsCommands: false,
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  streams: Object.keys(readers).map((name) => ({ name, tellsCommands: name in streams })),
  limits: [],
  open(context) {
    const { profile, model, env } = context;
    const { stream } = profile;
    const own = { ...(model && modelEnvironment(model)), ...serverEnvironment(profile) };
    const reader = stream === undefined ? undefined : readers[stream as keyof typeof readers];
    return {
      commandsFrom: sourceOf(profile),
      turn(_message, limits) {
        const whole = { ...own, ...env };
        return reader ? streamTurn(context, whole, reader, limits) : scriptTurn(context, whole, limits);
      },
    };
  },
};

/** Undefined: the model traffic if it shows commands, else the script. */
function sourceOf({ stream, trajectory }: HarnessContext['profile']): CommandSource | undefined {
  if (trajectory === 'wire') return 'traffic';
  return trajectory ?? (stream === undefined ? undefined : 'report');
}

/**
 * The model's address and token in the variables that most clients read. The profile's `env` overrides them.
 */
function modelEnvironment({ name, origin, token }: ModelAccess): Record<string, string> {
  return {
    OFFSITE_MODEL: name,
    OPENAI_BASE_URL: `${origin}/v1`,
    OPENAI_API_KEY: token,
    ANTHROPIC_BASE_URL: origin,
    ANTHROPIC_API_KEY: token,
  };
}

/**
 * The tool servers as most clients have them in a file:
 * `{"mcpServers": {NAME: {command, args, env} | {type, url}}}`.
 */
function serverEnvironment({ mcpServers }: HarnessContext['profile']): Record<string, string> {
  const servers = Object.entries(mcpServers).map(([name, server]) => [name, mcpEntry(server)]);
  if (servers.length === 0) return {};
  return { OFFSITE_MCP_SERVERS: JSON.stringify({ mcpServers: Object.fromEntries(servers) }) };
}
