import { randomUUID } from 'node:crypto';
import { Command } from '@commander-js/extra-typings';
import { runners } from '../../../runners/index.ts';
import { systemClock } from '../../clock.ts';
import { connectEngine } from '../../engine/connect.ts';
import { ConfigFile, loadConfig } from '../../suite/config-file.ts';
import { dataFolderOf } from '../data-folder.ts';
import { checks } from '../doctor/checks.ts';
import { attempt, type Examined, examine } from '../doctor/examine.ts';
import { doctorReport, printedReport } from '../doctor/report.ts';
import { exitCodes } from '../failure.ts';
import { interruption } from '../interruption.ts';
import { withService } from '../options.ts';
import { openTerminal } from '../terminal.ts';
import type { ServiceOptions } from '../with-client.ts';

export function doctorCommand() {
  return withService(new Command('doctor'))
    .description('look whether this machine can run trials, and say what is missing and how to mend it')
    .action(async (options) => {
      process.exitCode = await doctor(options);
    });
}

async function doctor(options: ServiceOptions): Promise<number> {
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
  const report = doctorReport(engine, examined);
  if (options.json) out.json(report);
  else out.print(printedReport(report));
  return exitCodeOf(examined);
}

/** A setting that is wrong comes first: what else fails may fail for it. */
function exitCodeOf(examined: readonly Examined[]): number {
  const kinds = examined.flatMap((check) => (check.state === 'fail' ? [check.kind] : []));
  if (kinds.includes('input')) return exitCodes.badInput;
  return kinds.length > 0 ? exitCodes.infrastructure : exitCodes.done;
}
