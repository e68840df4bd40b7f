import { Command } from '@commander-js/extra-typings';
import { conformanceChecks } from '../../engine/conformance/checks.ts';
import type { Engine } from '../../engine/engine.ts';
import { ConfigFile, loadConfig } from '../../suite/config-file.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { dataFolderOf } from '../data-folder.ts';
import { checks } from '../doctor/checks.ts';
import { runConformance } from '../doctor/deep/conformance.ts';
import { runHostile } from '../doctor/deep/run-hostile.ts';
import { attempt, type Examined, examine } from '../doctor/examine.ts';
import { type DeepReports, doctorReport, printedReport } from '../doctor/report.ts';
import { exitCodes } from '../failure.ts';
import { withService } from '../options.ts';

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
  const { clock, runners, out } = context;
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
  const deep =
    options.deep && engine.got
      ? await lookDeep(engine.value, { context, engineHost: config.engine?.host, signal })
      : {};
  const report = doctorReport(engine, examined, deep);
  if (options.json) out.json(report);
  else out.print(printedReport(report));
  return exitCodeOf(examined, deep);
}

interface DeepRequest {
  context: CommandContext;
  engineHost: string | undefined;
  signal: AbortSignal;
}

/** Checks the engine first: if the engine fails, that explains why agents are not held. */
async function lookDeep(engine: Engine, { context, engineHost, signal }: DeepRequest): Promise<DeepReports> {
  const { clock, err } = context;
  err.print(`what the engine must do: ${plural(conformanceChecks.length, 'check')}`);
  const conformance = await runConformance(engine, { clock, signal });
  const hostile = await runHostile({
    chosen: ({ deep }) => deep,
    env: process.env,
    engineHost,
    signal,
    onSuite: (suite, attacks) => err.print(`hostile agents: ${suite}, ${plural(attacks, 'case')}`),
  });
  return { ...(conformance && { conformance }), hostile };
}

/** A wrong setting decides first, because it may be the cause of the other failures. */
function exitCodeOf(examined: readonly Examined[], { conformance, hostile }: DeepReports): number {
  const kinds = examined.flatMap((check) => (check.state === 'fail' ? [check.kind] : []));
  if (kinds.includes('input')) return exitCodes.badInput;
  const isBroken = kinds.length > 0 || conformance?.held === false || hostile?.held === false;
  return isBroken ? exitCodes.infrastructure : exitCodes.done;
}
