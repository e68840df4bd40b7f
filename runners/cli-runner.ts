import { type Cli, cliSession } from '../src/harness/cli-session.ts';
import type { StreamReader } from '../src/harness/cli-stream.ts';
import type { CommandOutcome } from '../src/harness/message-lines.ts';
import { harnessNode, type NpmCli, npmInstall, programPath, versionFile } from '../src/harness/npm-cli.ts';
import { type PythonCli, pythonInstall, pythonVersionFile } from '../src/harness/python-cli.ts';
import { type HarnessContext, type ModelAccess, type Runner, requireModel } from '../src/harness/runner.ts';
import type { TurnRecord } from '../src/harness/turn-record.ts';
import { type McpServer, transportOf } from '../src/suite/mcp-server.ts';

/** A CLI that reads a message from stdin, prints one JSON object a line, and exits when its turn ends. */
interface CliRunner extends Omit<Runner, 'cli' | 'reportsCommands' | 'install' | 'open'> {
  cli: NpmCli | PythonCli;
  stream: StreamReader;
  /** The option before the name of a conversation that goes on. */
  resume?: string;
  /** Whether a resumed session also counts the tokens of its earlier turns. Default: no. */
  usageIsCumulative?: boolean;
  /** Lines that end the script that installs it. */
  afterInstall?: string;
  /** How it is started for a model. */
  launch(context: HarnessContext, model: ModelAccess): Launched;
}

interface Launched extends Pick<Cli, 'access' | 'files'> {
  /**
   * The arguments before those that continue a conversation, and those of the profile. Without a program, the
   * one that npm installed. A function gives the whole command line.
   */
  argv: { program?: readonly string[]; options: readonly string[] } | Cli['argv'];
  /** Default: none. */
  defaults?: Cli['defaults'];
}

export function cliRunner(given: CliRunner): Runner & Pick<CliRunner, 'stream'> {
  const { resume, usageIsCumulative = false, afterInstall = '', launch, ...runner } = given;
  const { cli, label, stream } = runner;
  const isPython = 'lock' in cli;
  return {
    ...runner,
    reportsCommands: true,
    install({ version }) {
      return isPython ? pythonInstall(cli, version) : npmInstall(cli, version) + afterInstall;
    },
    open(context) {
      const { argv, defaults = {}, ...launched } = launch(context, requireModel(label, context));
      const commandLine = (sessionId: string | undefined) => {
        if (typeof argv === 'function') return argv(sessionId);
        const { program = [programPath(cli)], options } = argv;
        const continued = resume === undefined || sessionId === undefined ? [] : [resume, sessionId];
        return [...program, ...options, ...continued, ...context.profile.args];
      };
      const version = isPython ? pythonVersionFile(cli) : versionFile(cli);
      const own = { label, argv: commandLine, defaults, versionFile: version, usageIsCumulative };
      return cliSession(context, { ...stream, ...launched, ...own });
    },
  };
}

/**
 * Node for CLIs that compile a large parser after a command, or when they exit after one, which would take
 * up to 2 GB of memory and 5 s.
 */
export const nodeWithoutCompiler = [
  harnessNode,
  '--no-wasm-tier-up',
  '--no-wasm-dynamic-tiering',
  '--liftoff-only',
];

/** A file with settings. Members that are undefined are left out. */
export function jsonFile(path: string, settings: unknown) {
  return { path, content: JSON.stringify(settings) };
}

/** The environment variables that have a value. */
export function variables(values: Record<string, number | undefined>): Record<string, string> {
  const known = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known.map(([name, value]) => [name, String(value)]));
}

/**
 * How long a CLI waits for a tool server to start. A server may be slow, or may be fetched first, on a busy
 * machine, and an agent without its tools is not the agent that was asked for. So the time limit of the
 * harness decides. Milliseconds.
 */
export const serverPatience = 3_600_000;

/** The tool servers of a profile, each as a CLI has it in its settings. */
export function mcpServers({ profile }: HarnessContext, entryOf: (server: McpServer) => unknown) {
  const entries = Object.entries(profile.mcpServers).map(([name, server]) => [name, entryOf(server)]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

/** A tool server as Gemini CLI and the CLIs that copied it have it. */
export function geminiMcpEntry(server: McpServer): object {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  return { ...(transportOf(server) === 'sse' ? { url } : { httpUrl: url }), headers };
}

/** When a line arrived, and when it was written by the CLI's clock. Epoch milliseconds. */
export interface When {
  at: number;
  own?: number;
}

/** A call of a tool begins. It is a command if the tool is the shell, and it names one. */
export function beginCall(
  record: TurnRecord,
  shell: string,
  { id, name, input }: { id: string; name: string; input?: { command?: unknown } | undefined },
  at: number | undefined,
  own?: number,
): void {
  const command = input?.command;
  if (name === shell && typeof command === 'string') record.beginCommand(id, command, at, own);
  else record.beginTool(id, name, input, at, own);
}

/** A call ends. @param outcomeOf says how, if it was a command */
export function endCall(
  record: TurnRecord,
  { id, output, failed }: { id: string; output: string | undefined; failed: boolean },
  when: When,
  outcomeOf: () => Partial<CommandOutcome>,
): void {
  if (record.openCommand(id) === undefined) record.endTool(id, { ...when, output, failed });
  else record.endCommand(id, { ...when, ...outcomeOf() });
}

/** The script of a command line such as `/bin/bash -lc SCRIPT`. Undefined if it is another one. */
export function scriptOfShell([shell = '', flag = '', script]: readonly string[]): string | undefined {
  return /(^|\/)(ba|z|da|k)?sh$/.test(shell) && /^-l?c$/.test(flag) ? script : undefined;
}
