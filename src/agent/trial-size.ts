import type { PlannedService } from '../suite/services.ts';
import type { TrialSpec, TrialStep } from '../trial/spec.ts';

/** `cpus` is in processors, `memory` in bytes. */
export interface Size {
  cpus: number;
  memory: number;
}

/** What the containers of a trial may take of a machine, by their limits. */
export interface TrialSize {
  sandbox: Size;
  /** All services that run at a time. Zero if the case has none. */
  services: Size;
}

const nothing: Size = { cpus: 0, memory: 0 };

/**
 * The size of a trial. The services of a case live until it is graded, so those of its tests run beside them.
 * The steps of a task are graded one at a time.
 */
export function sizeOfTrial(spec: TrialSpec): TrialSize {
  const { cpus, memory } = spec.sandbox;
  const ofTests = (spec.steps?.list ?? [spec]).map((graded) => ofFreshTests(graded, spec));
  const largest = {
    cpus: Math.max(...ofTests.map((size) => size.cpus)),
    memory: Math.max(...ofTests.map((size) => size.memory)),
  };
  const services = sumOf([ofServices(spec.environment.services, spec.sandbox), largest]);
  return { sandbox: { cpus, memory }, services };
}

function ofFreshTests(
  { tests, testsIn }: Pick<TrialSpec | TrialStep, 'tests' | 'testsIn'>,
  spec: TrialSpec,
): Size {
  if (!tests?.fresh) return nothing;
  const { environment, sandbox } = testsIn ?? spec;
  return ofServices(environment.services, sandbox);
}

/** The limits of a service are those of the sandbox, unless it has its own. */
function ofServices(services: readonly PlannedService[] = [], { cpus, memory }: Size): Size {
  return sumOf(
    services.map(({ resources }) => ({ cpus: resources.cpus ?? cpus, memory: resources.memory ?? memory })),
  );
}

export function sumOf(sizes: readonly Size[]): Size {
  return {
    cpus: sizes.reduce((sum, { cpus }) => sum + cpus, 0),
    memory: sizes.reduce((sum, { memory }) => sum + memory, 0),
  };
}

/** A quarter of the memory stays for the engine, its page cache and other programs. */
export function roomOf({ cpus, memoryBytes }: { cpus: number; memoryBytes: number }): Size {
  return { cpus, memory: memoryBytes * 0.75 };
}

/**
 * Whether a trial may run beside others. If none of them has services, the number of trials alone decides, so
 * this returns true. Otherwise all of them together must fit into the room. A trial alone may always run.
 */
export function fitsBeside(running: readonly TrialSize[], next: TrialSize, room: Size): boolean {
  const all = [...running, next];
  if (running.length === 0 || all.every(({ services }) => services.memory === 0)) return true;
  const { cpus, memory } = sumOf(all.flatMap(({ sandbox, services }) => [sandbox, services]));
  return cpus <= room.cpus && memory <= room.memory;
}
