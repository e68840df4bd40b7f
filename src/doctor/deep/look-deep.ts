import type { Clock } from '../../base/clock.ts';
import { unmetWishes } from '../../engine/capabilities.ts';
import { conformanceChecks } from '../../engine/conformance/checks.ts';
import type { Engine } from '../../engine/engine.ts';
import { plural } from '../../text/quantities.ts';
import type { UsedRuntime } from '../runtimes.ts';
import { type ConformanceReport, runConformance } from './conformance.ts';
import type { HostileReport } from './outcome.ts';
import { runHostile } from './run-hostile.ts';
import type { NamedHost } from './run-suite.ts';

/** Hostile agents that were not run. This fails: nobody knows whether they are held. */
export interface HostileNotRun {
  held: false;
  /** Why, in plain words. */
  notRun: string;
  fix: string;
}

/** What `--deep` adds, for each runtime that sandboxes use and the engine knows. */
export interface DeepReports {
  /** Empty if the base image is missing. */
  conformance: ({ runtime: string } & ConformanceReport)[];
  hostile: ({ runtime: string } & (HostileReport | HostileNotRun))[];
}

interface DeepRequest {
  runtimes: readonly UsedRuntime[];
  /** The engine of the configuration; undefined for the one of the environment. */
  configured: NamedHost | undefined;
  clock: Clock;
  signal: AbortSignal;
  /** Called before each part, with what it is. */
  note: (what: string) => void;
}

/** With this setting, a sandbox does without the filter if it must. */
const lenient = 'seccomp: if-available';

/** Checks the engine first: if the engine fails, that explains why agents are not held. */
export async function lookDeep(engine: Engine, request: DeepRequest): Promise<DeepReports> {
  const reports: DeepReports = { conformance: [], hostile: [] };
  const { clock, signal, note } = request;
  const known = request.runtimes.filter(
    ({ runtime }) => runtime === undefined || engine.capabilities.runtimes.includes(runtime),
  );
  for (const used of known) {
    const runtime = used.name;
    const noteHere = (what: string) => note(known.length === 1 ? what : `${runtime}: ${what}`);
    noteHere(`what the engine must do: ${plural(conformanceChecks.length, 'check')}`);
    const conformance = await runConformance(engine, { clock, signal, runtime: used.runtime });
    if (conformance !== undefined) reports.conformance.push({ runtime, ...conformance });
    reports.hostile.push({ runtime, ...(await hostileOn(engine, used, { ...request, note: noteHere })) });
  }
  return reports;
}

async function hostileOn(
  { capabilities }: Engine,
  used: UsedRuntime,
  { configured, signal, note }: DeepRequest,
): Promise<HostileReport | HostileNotRun> {
  const lacks = used.mayLackFilter ? [] : unmetWishes(used, capabilities);
  if (lacks.length > 0) {
    const settings = [...(used.runtime === undefined ? [] : [`runtime: ${used.runtime}`]), lenient].join(
      ', ',
    );
    return {
      held: false,
      notRun: `all trials would be refused, because sandboxes cannot have ${lacks.join('; ')}`,
      fix: `In offsite.yaml, set ${lenient} for sandboxes of this runtime: sandboxes: { local: { ${settings} } }`,
    };
  }
  return runHostile({
    chosen: ({ deep }) => deep,
    used,
    env: process.env,
    engine: configured,
    signal,
    onSuite: (suite, attacks) => note(`hostile agents: ${suite}, ${plural(attacks, 'case')}`),
  });
}
