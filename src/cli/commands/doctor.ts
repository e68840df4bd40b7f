import { randomUUID } from 'node:crypto';
import { Command } from '@commander-js/extra-typings';
import { runners } from '../../../runners/index.ts';
import { systemClock } from '../../clock.ts';
import { conformanceChecks } from '../../engine/conformance/checks.ts';
import { connectEngine } from '../../engine/connect.ts';
import type { Engine } from '../../engine/engine.ts';
import { ConfigFile, loadConfig } from '../../suite/config-file.ts';
import { dataFolderOf } from '../data-folder.ts';
import { checks } from '../doctor/checks.ts';
import { runConformance } from '../doctor/deep/conformance.ts';
import { runHostile } from '../doctor/deep/run-hostile.ts';
import { attempt, type Examined, examine } from '../doctor/examine.ts';
import { type DeepReports, doctorReport, printedReport } from '../doctor/report.ts';
import { exitCodes } from '../failure.ts';
import { interruption } from '../interruption.ts';
import { withService } from '../options.ts';
import { plural } from '../output/quantities.ts';
import { openTerminal } from '../terminal.ts';
import type { ServiceOptions } from '../with-client.ts';

export function doctorCommand() {
  return withService(new Command('doctor'))
    .description('look whether this machine can run trials, and say what is missing and how to mend it')
    .option(
      '--deep',
      'also try all that Offsite relies on the engine for, and run hostile agents on it (some minutes)',
    )
    .action(async (options) => {
      process.exitCode = await doctor(options);
    });
}

interface DoctorOptions extends ServiceOptions {
  deep?: true | undefined;
}

async function doctor(options: DoctorOptions): Promise<number> {
  const { env } = process;
  const { out, err } = openTerminal();
  const loaded = await attempt(() => loadConfig({ named: options.config, env }));
  const config = loaded.got ? loaded.value : { ...ConfigFile.parse({}), file: undefined };
  using interrupted = interruption((message) => err.print(message));
  const { signal } = interrupted;
  const engine = await attempt(() =>
    connectEngine({ host: config.engine?.host, env, instance: randomUUID(), signal, clock: systemClock }),
  );
  await using _ = engine.got ? engine.value : undefined;
  const examined = await examine(checks, {
    env,
    clock: systemClock,
    signal,
    runners,
    insecureHttp: options.insecureHttp,
    config,
    configFailure: loaded.got ? undefined : loaded.error,
    dataFolder: dataFolderOf(options.dataFolder, config, env),
    engine,
  });
  const deep =
    options.deep && engine.got
      ? await lookDeep(engine.value, { engineHost: config.engine?.host, signal, err })
      : {};
  const report = doctorReport(engine, examined, deep);
  if (options.json) out.json(report);
  else out.print(printedReport(report));
  return exitCodeOf(examined, deep);
}

interface DeepRequest {
  engineHost: string | undefined;
  signal: AbortSignal;
  /** Hears what begins: it takes minutes. */
  err: ReturnType<typeof openTerminal>['err'];
}

/** What the engine does first: where that fails, it is why agents are not held. */
async function lookDeep(engine: Engine, { engineHost, signal, err }: DeepRequest): Promise<DeepReports> {
  err.print(`what the engine must do: ${plural(conformanceChecks.length, 'check')}`);
  const conformance = await runConformance(engine, { clock: systemClock, signal });
  const hostile = await runHostile({
    chosen: ({ deep }) => deep,
    env: process.env,
    engineHost,
    signal,
    onSuite: (suite, attacks) => err.print(`hostile agents: ${suite}, ${plural(attacks, 'case')}`),
  });
  return { ...(conformance && { conformance }), hostile };
}

/** A setting that is wrong comes first: what else fails may fail for it. */
function exitCodeOf(examined: readonly Examined[], { conformance, hostile }: DeepReports): number {
  const kinds = examined.flatMap((check) => (check.state === 'fail' ? [check.kind] : []));
  if (kinds.includes('input')) return exitCodes.badInput;
  const isBroken = kinds.length > 0 || conformance?.held === false || hostile?.held === false;
  return isBroken ? exitCodes.infrastructure : exitCodes.done;
}
