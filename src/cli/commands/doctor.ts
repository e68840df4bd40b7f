import { Command } from '@commander-js/extra-typings';
import { dataFolderOf } from '../../api/data-folder.ts';
import { attempt } from '../../doctor/examine.ts';
import { lookAtMachine } from '../../doctor/look-at-machine.ts';
import { type DoctorReport, printedReport } from '../../doctor/report.ts';
import { ConfigFile } from '../../suite/config-file.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, withService } from '../options.ts';

export function doctorCommand() {
  return withService(new Command('doctor'))
    .description('check whether this machine can run trials, and say what is missing and how to get it')
    .option(
      '--deep',
      'also check all engine features that Offsite relies on, and run hostile agents (some minutes)',
    )
    .action(async (options) => {
      process.exitCode = await doctor(options);
    });
}

type DoctorOptions = OptionsOf<typeof doctorCommand>;

async function doctor({ config: file, insecureHttp, ...options }: DoctorOptions): Promise<number> {
  const { env } = process;
  const loaded = await attempt(() => loadConfig({ named: file, env }));
  const config = loaded.got ? loaded.value : { ...ConfigFile.parse({}), file: undefined };
  const dataFolder = dataFolderOf(options.dataFolder, config, env);
  await using context = new CommandContext({ config, env, dataFolder, insecureHttp });
  const { out } = context;
  const { signal } = context.interruption();
  const configFailure = loaded.got ? undefined : loaded.error;
  const deep = options.deep === true;
  const report = await lookAtMachine(context, { configFailure, insecureHttp, deep, signal });
  if (options.json) out.json(report);
  else out.print(printedReport(report));
  return exitCodeOf(report);
}

/** A wrong setting decides first, because it may be the cause of the other failures. */
function exitCodeOf({ ready, checks }: DoctorReport): number {
  const isWrong = checks.some((check) => check.state === 'fail' && check.kind === 'input');
  if (isWrong) return exitCodes.badInput;
  return ready ? exitCodes.done : exitCodes.infrastructure;
}
