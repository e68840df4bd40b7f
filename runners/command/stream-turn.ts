import type { StreamReader } from '../../src/harness/cli-stream.ts';
import type { HarnessContext, HarnessRun, TurnLimits } from '../../src/harness/runner.ts';
import { streamedTurn } from '../../src/harness/streamed-turn.ts';
import { TurnRecord } from '../../src/harness/turn-record.ts';
import { notStarted } from './not-started.ts';

/** Reads the script to its end before it runs, so that its programs read end-of-file. */
const runInput = `IFS= read -r -d '' __offsite_script
eval "unset -v __offsite_script"$'\\n'"$__offsite_script"`;

/**
 * Runs the profile's script as one program and reads what it prints on stdout. Only what the stream reports
 * is in the record: the script's own commands are not commands of the trial.
 */
export function streamTurn(
  { container, profile, workspace, clock }: HarnessContext,
  env: Record<string, string>,
  reader: StreamReader,
  limits: TurnLimits,
): Promise<HarnessRun> {
  const { run: script = '' } = profile;
  if (script.includes('\0')) throw notStarted(profile, 'it contains a NUL character, which bash cannot read');
  const label = `the run script of profile ${profile.name}`;
  return streamedTurn(
    {
      ...{ label, reader, record: new TurnRecord(), clock },
      async run(request) {
        const result = await container.exec({
          ...request,
          argv: ['bash', '-c', runInput],
          // As in scripts without a stream: bash runs no file that an image names.
          env: { ...env, BASH_ENV: '' },
          cwd: workspace,
          stdin: script,
        });
        if (result.ended === 'not-started') throw notStarted(profile, result.message);
        return result;
      },
    },
    limits,
  );
}
