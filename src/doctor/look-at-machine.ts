import { enginesOf } from '../agent/engines/check.ts';
import type { Context } from '../api/context.ts';
import type { Engine } from '../engine/engine.ts';
import type { Config } from '../suite/config-file.ts';
import { configuredEngines } from '../suite/engines-config.ts';
import {
  baseImage,
  engineClock,
  engineDisk,
  engineLimits,
  engineReachable,
  engineRuntime,
  type SandboxRuntime,
  sandboxes,
  snapshots,
  type UsedRuntime,
  usedRuntimes,
} from './checks/engine-content.ts';
import { sealedSandbox } from './checks/sealed-sandbox.ts';
import { certificates, configuration, dataFolder, modelKeys, service } from './checks/this-machine.ts';
import { lookDeep } from './deep/look-deep.ts';
import { attempt, type Check, examine, type Prerequisite } from './examine.ts';
import { type DoctorReport, doctorReport } from './report.ts';

interface Looking {
  /** What was wrong with the configuration; then the context has the defaults. */
  configFailure: unknown;
  insecureHttp: boolean | undefined;
  /** Whether to check all engine features that Offsite relies on, and to run hostile agents. */
  deep: boolean;
  signal: AbortSignal;
}

/** Checks whether this machine can run trials. What is wrong is in the report. */
export async function lookAtMachine(
  context: Context,
  { configFailure, insecureHttp, deep: isDeep, signal }: Looking,
): Promise<DoctorReport> {
  const { env, clock, runners, config, dataFolder, note } = context;
  // Another engine than the one that the configuration names tells nothing.
  const [engine, ...others]: SomeNamed =
    configFailure === undefined ? await eachEngine(context, signal) : [{ got: false, error: configFailure }];
  const surroundings = { env, clock, signal, runners, insecureHttp, config, configFailure, dataFolder };
  const checksOn = (one: NamedEngine) => {
    // Without an engine, there is one check for any sandbox.
    const runtimes = one.got ? runtimesOn(one.value, config) : [{ runtime: undefined, mayLackFilter: false }];
    return checksOf(runtimes).map((check) =>
      check.ofEngine && one.name !== undefined ? { ...check, name: `${one.name}: ${check.name}` } : check,
    );
  };
  const examined = await examine(checksOn(engine), { ...surroundings, engine });
  for (const other of others) {
    const again = checksOn(other).filter(({ ofEngine }) => ofEngine);
    examined.push(...(await examine(again, { ...surroundings, engine: other })));
  }
  const [first] = configuredEngines(config);
  const { host, certificates } = first ?? { host: config.engine?.host };
  const deep =
    isDeep && engine.got
      ? await lookDeep(engine.value, {
          runtimes: runtimesOn(engine.value, config),
          configured: host === undefined ? undefined : { host, certificates },
          clock,
          signal,
          note,
        })
      : undefined;
  return doctorReport(engine, examined, deep);
}

type NamedEngine = Prerequisite<Engine> & { name?: string };
type SomeNamed = [NamedEngine, ...NamedEngine[]];

/** The engine, or each of several. `--deep` looks at the first. */
async function eachEngine(context: Context, signal: AbortSignal): Promise<SomeNamed> {
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

/** The runtimes that sandboxes use on an engine. */
function runtimesOn({ capabilities }: Engine, { sandboxes }: Config): readonly UsedRuntime[] {
  return usedRuntimes(sandboxes, capabilities.defaultRuntime);
}

/**
 * All checks of `offsite doctor`, in the order of the report: this machine, the service, the engine. There is
 * a sealed sandbox of each of the runtimes.
 */
const checksOf = (runtimes: readonly SandboxRuntime[]): readonly Check[] => [
  configuration,
  certificates,
  dataFolder,
  service,
  modelKeys,
  engineReachable,
  engineRuntime,
  engineLimits,
  engineClock,
  engineDisk,
  baseImage,
  sandboxes,
  ...runtimes.map(sealedSandbox),
  snapshots,
];
