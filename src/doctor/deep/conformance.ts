import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../base/clock.ts';
import { infrastructureError, inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { baseImageName, baseImageRecipe } from '../../base-image/recipe.ts';
import { conformanceChecks } from '../../engine/conformance/checks.ts';
import { type Conformance, examineConformance } from '../../engine/conformance/testbed.ts';
import type { Engine } from '../../engine/engine.ts';
import { SuiteFile } from '../../suite/suite-file.ts';
import { readYamlFile } from '../../suite/yaml-file.ts';
import { lines, ours, type Printable, stack, styled, text } from '../../text/printable.ts';

export interface ConformanceReport {
  /** No check failed. */
  held: boolean;
  checks: Conformance[];
}

interface ConformanceRequest {
  clock: Clock;
  signal: AbortSignal;
  /** As a sandbox names it; undefined for the engine's default. */
  runtime: string | undefined;
}

/**
 * Checks that the engine does everything that Offsite relies on, with containers of a runtime; undefined if
 * the base image is missing, which the checks need.
 */
export async function runConformance(
  engine: Engine,
  { clock, signal, runtime }: ConformanceRequest,
): Promise<ConformanceReport | undefined> {
  const image = await engine.findImage(baseImageName(baseImageRecipe), signal);
  if (image === undefined) return undefined;
  const checks = await examineConformance(conformanceChecks, engine, {
    imageId: image.id,
    clock,
    runtime,
    signal,
  });
  return { held: checks.every(({ state }) => state !== 'failed'), checks };
}

const marks = {
  held: styled('green', ours('ok  ')),
  failed: styled('red', ours('FAIL')),
  skipped: styled('dim', ours('–   ')),
} as const;

/** A line for each check; for a failed one also what was found and what that costs. */
export function printedConformance({ checks }: ConformanceReport, title: Printable): Printable {
  const printed = checks.flatMap((check) => [
    text`${marks[check.state]}  ${ours(check.name)}`,
    ...(check.state === 'held' ? [] : [text`      ${lines(check.found)}`]),
    ...(check.state === 'failed' ? [text`      ${styled('bold', ours(check.cost))}`] : []),
  ]);
  return stack([title, ...printed]);
}

/** The suites of `examples/hostile`, in the order of the report. */
export const hostileSuites = [
  'forge-verify',
  'forge-same',
  'forge-validator',
  'escape',
  'leak',
  'crash',
  'honest',
] as const;
export type HostileSuite = (typeof hostileSuites)[number];

/** What a case tries; `honest` only does its work. */
const kinds = ['forge', 'escape', 'leak', 'crash', 'honest'] as const;
export type AttackKind = (typeof kinds)[number];

/** A case of a hostile suite. */
export interface Attack {
  suite: HostileSuite;
  id: string;
  /** In plain words. */
  name: string;
  kind: AttackKind;
  expected: 'passed' | 'failed';
  /** Whether `offsite doctor --deep` also runs it. */
  deep: boolean;
  /**
   * Whether it is about the machine's own kernel: with another kernel around it, what it reaches is only that
   * one.
   */
  isOfMachineKernel: boolean;
}

/** The folder with the suites and their configuration, in a checkout or in the installed package. */
export function hostileFolder(): string {
  const places = ['../../../examples/hostile', '../../../../examples/hostile'];
  const found = places
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find((folder) => existsSync(join(folder, 'offsite.yaml')));
  if (found !== undefined) return found;
  throw infrastructureError(
    'HOSTILE_SUITES_MISSING',
    'the hostile suites, examples/hostile, are missing from this installation',
    { hint: 'Install the package offsite again; it contains them.' },
  );
}

export function attacksOf(suite: HostileSuite, folder = hostileFolder()): Attack[] {
  const { cases = [] } = readYamlFile(join(folder, `${suite}.yaml`), SuiteFile).value;
  return cases.map(({ id, name = id, tags = [] }) => {
    const kind = kinds.filter((word) => tags.includes(word));
    const expected = (['passed', 'failed'] as const).filter((verdict) => tags.includes(`expect:${verdict}`));
    if (kind.length !== 1 || kind[0] === undefined || expected.length !== 1 || expected[0] === undefined)
      throw badTags(suite, id);
    return {
      suite,
      id,
      name,
      kind: kind[0],
      expected: expected[0],
      deep: tags.includes('deep'),
      isOfMachineKernel: tags.includes('machine-kernel'),
    };
  });
}

function badTags(suite: string, id: string): OffsiteError {
  return inputError(
    'HOSTILE_TAGS',
    `case ${id} of ${suite}.yaml needs one tag of ${kinds.join(', ')}, and expect:passed or expect:failed`,
    { hint: 'The tags say what the result of the case should be.' },
  );
}
