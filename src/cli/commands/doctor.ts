import { Command } from '@commander-js/extra-typings';
import { ConfigFile, loadConfig } from '../../suite/config-file.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { dataFolderOf } from '../data-folder.ts';
import { checks } from '../doctor/checks.ts';
import { type HostileReport, runHostile } from '../doctor/deep/run-hostile.ts';
import { attempt, type Examined, examine } from '../doctor/examine.ts';
import { doctorReport, printedReport } from '../doctor/report.ts';
import { exitCodes } from '../failure.ts';
import { withService } from '../options.ts';
import { plural } from '../output/quantities.ts';

export function doctorCommand() {
  return withService(new Command('doctor'))
    .description('look whether this machine can run trials, and say what is missing and how to mend it')
    .option('--deep', 'also run hostile agents on this engine, and say what came of each (some minutes)')
    .action(async (options) => {
      process.exitCode = await doctor(options);
    });
}

interface DoctorOptions extends CommonOptions {
  deep?: true | undefined;
}

async function doctor(options: DoctorOptions): Promise<number> {
  const { env } = process;
  const loaded = await attempt(() => loadConfig({ named: options.config, env }));
  const config = loaded.got ? loaded.value : { ...ConfigFile.parse({}), file: undefined };
  const { insecureHttp } = options;
  const dataFolder = dataFolderOf(options.dataFolder, config, env);
  await using context = new CommandContext({ config, env, dataFolder, insecureHttp });
  const { clock, runners, out, err } = context;
  const { signal } = context.interruption();
  const engine = await attempt(() => context.engine(signal));
  const examined = await examine(checks, {
    env,
    clock,
    signal,
    runners,
    insecureHttp,
    config,
    configFailure: loaded.got ? undefined : loaded.error,
    dataFolder,
    engine,
  });
  const hostile =
    options.deep && engine.got
      ? await runHostile({
          chosen: ({ deep }) => deep,
          env,
          engineHost: config.engine?.host,
          signal,
          onSuite: (suite, attacks) => err.print(`hostile agents: ${suite}, ${plural(attacks, 'case')}`),
        })
      : undefined;
  const report = doctorReport(engine, examined, hostile);
  if (options.json) out.json(report);
  else out.print(printedReport(report));
  return exitCodeOf(examined, hostile);
}

/** A setting that is wrong comes first: what else fails may fail for it. */
function exitCodeOf(examined: readonly Examined[], hostile: HostileReport | undefined): number {
  const kinds = examined.flatMap((check) => (check.state === 'fail' ? [check.kind] : []));
  if (kinds.includes('input')) return exitCodes.badInput;
  return kinds.length > 0 || hostile?.held === false ? exitCodes.infrastructure : exitCodes.done;
}
