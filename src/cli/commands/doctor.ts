import { Command } from '@commander-js/extra-typings';
import { enginesOf } from '../../agent/engines/check.ts';
import { dataFolderOf } from '../../api/data-folder.ts';
import type { Engine } from '../../engine/engine.ts';
import { type Config, ConfigFile } from '../../suite/config-file.ts';
import { configuredEngines } from '../../suite/engines-config.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { CommandContext } from '../context.ts';
import type { Check, Prerequisite } from '../doctor/check.ts';
import { checksOf } from '../doctor/checks.ts';
import { type DeepReports, lookDeep } from '../doctor/deep/look-deep.ts';
import { attempt, type Examined, examine } from '../doctor/examine.ts';
import { allHeld, doctorReport, printedReport } from '../doctor/report.ts';
import { type SandboxRuntime, type UsedRuntime, usedRuntimes } from '../doctor/runtimes.ts';
import { exitCodes } from '../exit-codes.ts';
import { withService } from '../options.ts';
import type { CommonOptions } from '../settings.ts';

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
  // Another engine than the one that the configuration names tells nothing.
  const [engine, ...others]: SomeNamed = loaded.got ? await eachEngine(context, signal) : [loaded];
  const surroundings = {
    env,
    clock,
    signal,
    runners,
    insecureHttp,
    config,
    configFailure: loaded.got ? undefined : loaded.error,
    dataFolder,
  };
  const checksOn = (one: NamedEngine) => named(checksOf(runtimesOf(one, config)), one.name);
  const examined = await examine(checksOn(engine), { ...surroundings, engine });
  for (const other of others) {
    const again = checksOn(other).filter(({ ofEngine }) => ofEngine);
    examined.push(...(await examine(again, { ...surroundings, engine: other })));
  }
  const [first] = configuredEngines(config);
  const { host, certificates } = first ?? { host: config.engine?.host };
  const note = (what: string) => context.err.print(what);
  const deep =
    options.deep && engine.got
      ? await lookDeep(engine.value, {
          runtimes: runtimesOn(engine.value, config),
          configured: host === undefined ? undefined : { host, certificates },
          ...{ clock, signal, note },
        })
      : undefined;
  const report = doctorReport(engine, examined, deep);
  if (options.json) out.json(report);
  else out.print(printedReport(report));
  return exitCodeOf(examined, deep);
}

type NamedEngine = Prerequisite<Engine> & { name?: string };
type SomeNamed = [NamedEngine, ...NamedEngine[]];

/** The engine, or each of several. `--deep` looks at the first. */
async function eachEngine(context: CommandContext, signal: AbortSignal): Promise<SomeNamed> {
  const opened = await attempt(() => context.engines.all(signal));
  if (!opened.got) return [opened];
  const { away, ...engines } = opened.value;
  const byName = new Map<string | undefined, NamedEngine>();
  for (const value of enginesOf(engines)) byName.set(value.name, { got: true, value });
  for (const { name, error } of away) byName.set(name, { got: false, error });
  const names = configuredEngines(context.config).map(({ name }) => name);
  const [first, ...others] = names.flatMap((name) => {
    const one = byName.get(name);
    return one ? [{ ...one, name }] : [];
  });
  return first ? [first, ...others] : [{ got: true, value: engines.engine }];
}

/** The runtimes to check: those that sandboxes use, or without an engine that of any sandbox. */
function runtimesOf(engine: NamedEngine, config: Config): readonly SandboxRuntime[] {
  return engine.got ? runtimesOn(engine.value, config) : [{ runtime: undefined, mayLackFilter: false }];
}

function runtimesOn({ capabilities }: Engine, { sandboxes }: Config): readonly UsedRuntime[] {
  return usedRuntimes(sandboxes, capabilities.defaultRuntime);
}

/** The checks of an engine, with its name if it is one of several. */
function named(all: readonly Check[], name: string | undefined): Check[] {
  return all.map((check) =>
    check.ofEngine && name !== undefined ? { ...check, name: `${name}: ${check.name}` } : check,
  );
}

/** A wrong setting decides first, because it may be the cause of the other failures. */
function exitCodeOf(examined: readonly Examined[], deep: DeepReports | undefined): number {
  const kinds = examined.flatMap((check) => (check.state === 'fail' ? [check.kind] : []));
  if (kinds.includes('input')) return exitCodes.badInput;
  const isBroken = kinds.length > 0 || (deep !== undefined && !allHeld(deep));
  return isBroken ? exitCodes.infrastructure : exitCodes.done;
}
