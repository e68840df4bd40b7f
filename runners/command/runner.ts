import type { TrajectoryEntry } from '../../src/contract/report.ts';
import type { ScriptResult, ScriptStep } from '../../src/engine/script/script-request.ts';
import { mcpEntry } from '../../src/harness/mcp-entry.ts';
import type {
  HarnessContext,
  HarnessEnding,
  HarnessRun,
  ModelAccess,
  Runner,
  TurnLimits,
} from '../../src/harness/runner.ts';
import { OffsiteError } from '../../src/offsite-error.ts';

/**
 * Runs any program as a harness: the profile's `run` script, with one command per line. Each line is a
 * command of the trajectory. The exit code is that of the last command.
 */
export const command: Runner = {
  name: 'command',
  label: 'Command (a profile with a run script)',
  wires: [],
  tellsCommands: false,
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  limits: [],
  open: (context) => ({ turn: (_message, limits) => run(context, limits) }),
};

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

/** 128 + SIGKILL: the exit code of a killed program. */
const killed = 137;

async function run(
  { container, profile, env, workspace, model }: HarnessContext,
  { timeoutMs, signal, stop }: TurnLimits,
): Promise<HarnessRun> {
  const result = await container.runScript({
    script: profile.run ?? '',
    env: { ...(model && modelEnvironment(model)), ...serverEnvironment(profile), ...env },
    cwd: workspace,
    timeoutMs,
    signal: AbortSignal.any([signal, stop]),
  });
  if (result.ended === 'not-started') {
    throw new OffsiteError(
      `the run script of profile ${profile.name} could not be started: ${result.message}`,
      {
        code: 'RUNNER_NOT_STARTED',
        kind: 'infrastructure',
      },
    );
  }
  return { ending: endingOf(result, timeoutMs, stop), trajectory: result.steps.map(entryOf), events: [] };
}

function endingOf({ ended, steps }: ScriptResult, timeoutMs: number, stop: AbortSignal): HarnessEnding {
  if (ended === 'canceled' && stop.aborted)
    return { ended: 'stopped', message: String(stop.reason?.message) };
  if (ended === 'timed-out') return { ended, afterMs: timeoutMs };
  if (ended === 'out-of-disk') return { ended };
  const last = steps.at(-1);
  if (last === undefined) return { ended: 'exited', exitCode: 0 };
  return { ended: 'exited', exitCode: last.ended === 'exited' ? last.exitCode : killed };
}

function entryOf(step: ScriptStep): TrajectoryEntry {
  return {
    _tag: 'command',
    command: step.command,
    startedAtMillis: step.startedAtMillis,
    finishedAtMillis: step.finishedAtMillis,
    output: step.output,
    outputTruncated: step.outputTruncated,
    ...(step.ended === 'exited' && { exitCode: step.exitCode }),
  };
}
