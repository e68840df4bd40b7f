import { programEnvironment } from '../../src/harness/program-environment.ts';
import type { CommandSource, HarnessContext, Runner } from '../../src/harness/runner.ts';
import { streams } from '../streams.ts';
import { jsonlStream } from './jsonl.ts';
import { scriptTurn } from './script-turn.ts';
import { streamTurn } from './stream-turn.ts';

const readers = { ...streams, jsonl: jsonlStream };

/**
 * Runs any program as a harness: the profile's `run` script. If the profile names no `stream`, each command
 * of the script is a command of the trial. The exit code is that of the last command.
 */
export const command: Runner = {
  name: 'command',
  label: 'Command (a profile with a run script)',
  wires: [],
  runsScript: true,
  reportsCommands: false,
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  streams: Object.keys(readers).map((name) => ({ name, reportsCommands: name in streams })),
  limits: [],
  open(context) {
    const { profile } = context;
    const { stream } = profile;
    const reader = stream === undefined ? undefined : readers[stream as keyof typeof readers];
    return {
      commandsFrom: sourceOf(profile),
      turn(_message, limits) {
        // Each turn gets the time and the budget that are left when it starts.
        const env = programEnvironment(context);
        return reader ? streamTurn(context, env, reader, limits) : scriptTurn(context, env, limits);
      },
    };
  },
};

/** Undefined: the model traffic if it shows commands, else the script. */
function sourceOf({ stream, trajectory }: HarnessContext['profile']): CommandSource | undefined {
  if (trajectory === 'wire') return 'traffic';
  return trajectory ?? (stream === undefined ? undefined : 'report');
}
