import type { Clock } from '../../base/clock.ts';
import { baseImageName, baseImageRecipe } from '../../base-image/recipe.ts';
import { type Conformance, examineConformance } from '../../engine/conformance/check.ts';
import { conformanceChecks } from '../../engine/conformance/checks.ts';
import type { Engine } from '../../engine/engine.ts';
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
