import { basename, dirname, join } from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';
import { parseForeignJson } from '../base/parse-json.ts';
import { programFile } from '../base/version.ts';
import { sentEvidence } from '../bounds/callers.ts';
import { refuseBody } from '../service/api-error.ts';
import type { AuditedEvidence, Auditor } from '../service/auditor.ts';
import { exitCodes } from './exit-codes.ts';

const Level = z.object({
  state: z.string(),
  contradictions: z.array(
    z.object({ path: z.string(), says: z.string(), expected: z.string(), found: z.string() }),
  ),
  unchecked: z.array(z.string()),
});

/** The parts of what `offsite audit --json` prints that are looked at. */
const Document = z.object({
  whole: Level,
  trials: z.array(
    z.object({
      ...{ runId: z.string(), ordinal: z.number(), standing: z.string(), levels: z.array(Level) },
      committed: z.object({
        record: z.string().optional(),
        report: z.string().optional(),
        setup: z.string().optional(),
      }),
    }),
  ),
});

/**
 * Audits with this Offsite's `offsite audit`, in a process of its own: whatever is in the file delays and
 * ends only that process, which has no key, no configuration and no data folder of this machine.
 */
export function auditorHere(env: NodeJS.ProcessEnv): Auditor {
  return {
    async audit(file, signal) {
      const folder = dirname(file);
      const args = ['audit', basename(file), '--level', 'consistent', '--json'];
      const ran = await execa(
        process.execPath,
        [programFile(), ...args, '--data-folder', join(folder, 'data')],
        {
          cwd: folder,
          extendEnv: false,
          env: { PATH: env.PATH, HOME: folder, TMPDIR: folder, NO_COLOR: '1' },
          cancelSignal: signal,
          forceKillAfterDelay: 1_000,
          stdin: 'ignore',
          reject: false,
          maxBuffer: sentEvidence.bytes.found,
        },
      );
      signal.throwIfAborted();
      if (ran.exitCode === exitCodes.done || ran.exitCode === exitCodes.belowThreshold)
        return evidenceOf(Document.parse(parseForeignJson(ran.stdout)));
      const [message = ''] = ran.stderr.replace(/^error: /, '').split('\n');
      if (ran.exitCode === exitCodes.badInput) throw refuseBody([{ _tag: 'Type', path: [], message }]);
      throw new Error(`an audit ended with ${ran.exitCode ?? ran.signal}: ${ran.stderr.slice(-2_000)}`);
    },
  };
}

function evidenceOf({ whole, trials }: z.infer<typeof Document>): AuditedEvidence {
  return {
    contradiction: whole.state === 'contradicted' ? `the batch: ${firstOf([whole])}` : undefined,
    trials: trials.map(({ runId, ordinal, standing, levels, committed }) => {
      const level = standing === 'consistent' ? standing : undefined;
      return { runId, ordinal, level, ...committed, reason: level ? undefined : firstOf(levels) };
    }),
  };
}

/** The first thing that is contradicted, or else that could not be checked. */
function firstOf(levels: z.infer<typeof Level>[]): string | undefined {
  const [contradiction] = levels.flatMap(({ contradictions }) => contradictions);
  if (!contradiction) return levels.flatMap(({ unchecked }) => unchecked)[0];
  const { path, says, expected, found } = contradiction;
  return `${path}: ${says}: expected ${expected}, found ${found}`;
}
