import { basename, dirname, join, resolve } from 'node:path';
import { execa } from 'execa';
import { parseForeignJson } from '../base/parse-json.ts';
import { programFile } from '../base/version.ts';
import { sentEvidence } from '../bounds/callers.ts';
import type { AuditedLevel } from '../record/audit.ts';
import { refusePart } from '../service/json-response.ts';
import type { AuditedEvidence, Auditor } from '../service/platform.ts';
import type { AuditDocument } from './commands/audit.ts';
import { exitCodes } from './exit-codes.ts';

/** How an audit ends that says what it found. */
const found: readonly unknown[] = [exitCodes.done, exitCodes.belowThreshold, exitCodes.infrastructure];

/** What the audit's process needs to reach the engine of the executor. None of it is a key of a model. */
const forEngine = [
  'HOME',
  'XDG_RUNTIME_DIR',
  'SSH_AUTH_SOCK',
  'CONTAINER_HOST',
  'DOCKER_CERT_PATH',
  'DOCKER_CONFIG',
  'DOCKER_CONTEXT',
  'DOCKER_HOST',
  'DOCKER_TLS_VERIFY',
];

/**
 * Audits with this Offsite's `offsite audit`, in a process of its own: whatever is in the file delays and
 * ends only that process, which has no key and no data folder of this machine.
 *
 * @param executor how platform batches run here: with it, evidence is graded again on the same engine.
 *   Without it, the process reads no configuration and reaches no engine.
 */
export function auditorHere(
  env: NodeJS.ProcessEnv,
  executor?: { config: string | undefined } | undefined,
): Auditor {
  const config = executor?.config === undefined ? [] : ['--config', resolve(executor.config)];
  const passed = executor ? forEngine.map((name) => [name, env[name]]) : [];
  const ranAt = async (level: 'consistent' | 'regraded', file: string, signal: AbortSignal) => {
    const folder = dirname(file);
    const args = ['audit', basename(file), '--level', level, '--json', ...config];
    const words = [programFile(), ...args, '--data-folder', join(folder, level)];
    const { exitCode, stdout, stderr, ...ended } = await execa(process.execPath, words, {
      cwd: folder,
      extendEnv: false,
      env: { HOME: folder, ...Object.fromEntries(passed), PATH: env.PATH, TMPDIR: folder, NO_COLOR: '1' },
      cancelSignal: signal,
      forceKillAfterDelay: 1_000,
      stdin: 'ignore',
      reject: false,
      maxBuffer: sentEvidence.bytes.found,
    });
    signal.throwIfAborted();
    if (found.includes(exitCode) && stdout !== '')
      return evidenceOf(parseForeignJson(stdout) as AuditDocument);
    // Lines about its progress may come before.
    const [message = ''] = stderr.replace(/^(?:[\s\S]*\n)?error: /, '').split('\n');
    if (exitCode === exitCodes.badInput) throw refusePart(message);
    if (exitCode === exitCodes.infrastructure && level === 'regraded') return message;
    throw new Error(`an audit ended with ${exitCode ?? ended.signal}: ${stderr.slice(-2_000)}`);
  };
  return {
    async audit(file, signal) {
      const regraded = executor ? await ranAt('regraded', file, signal) : 'nothing runs trials here';
      if (typeof regraded !== 'string') return regraded;
      const audited = await ranAt('consistent', file, signal);
      if (typeof audited === 'string') throw new Error(audited);
      const why = `it was not graded again: ${regraded}`;
      return { ...audited, trials: audited.trials.map((one) => ({ ...one, reason: one.reason ?? why })) };
    },
  };
}

function evidenceOf({ whole, trials }: AuditDocument): AuditedEvidence {
  return {
    contradiction: whole.state === 'contradicted' ? `the batch: ${firstOf([whole])}` : undefined,
    trials: trials.map(({ runId, ordinal, standing, levels, committed: { record, report, setup } }) => {
      const level = standing === 'consistent' || standing === 'regraded' ? standing : undefined;
      const reason = firstOf(levels.filter(({ state }) => state !== 'held'));
      return { runId, ordinal, level, record, report, setup, reason };
    }),
  };
}

/** The first thing that is contradicted, or else that could not be checked. */
function firstOf(levels: Pick<AuditedLevel, 'contradictions' | 'unchecked'>[]): string | undefined {
  const [contradiction] = levels.flatMap(({ contradictions }) => contradictions);
  if (!contradiction) return levels.flatMap(({ unchecked }) => unchecked)[0];
  const { path, says, expected, found } = contradiction;
  return `${path}: ${says}: expected ${expected}, found ${found}`;
}
