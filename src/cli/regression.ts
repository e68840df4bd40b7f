import type { OlderSide } from '../api/compare-to.ts';
import { type Comparison, trialsOfSides } from '../comparison/compare-sides.ts';
import type { ComparedBatches } from '../comparison/comparison.ts';
import { variantChangesText } from '../record/fingerprint.ts';
import { casesNeeded } from '../text/finding.ts';
import { joined, ours, type Printable, present, stack, text } from '../text/printable.ts';
import { firstNames, percent, plural } from '../text/quantities.ts';
import { exitCodes } from './exit-codes.ts';
import type { RunSummary } from './output/summary.ts';

/** The gates that a comparison may have. */
export interface RegressionGates {
  failOnRegression?: true | undefined;
  failOnCaseRegression?: true | undefined;
}

/** How many cases a message names. */
const named = 5;

/** The exit code of the gates: one fails, or nothing is compared, so that they have nothing to judge. */
export function exitCodeOfGates(compared: ComparedBatches | undefined, gates: RegressionGates): number {
  if (!hasGate(gates)) return exitCodes.done;
  if (!compared || judgesNothing(compared)) return exitCodes.infrastructure;
  const isWorse = gates.failOnRegression === true && worseIn(compared).length > 0;
  const isLost = gates.failOnCaseRegression === true && lostIn(compared).length > 0;
  return isWorse || isLost ? exitCodes.belowThreshold : exitCodes.done;
}

/** Why the gates fail a command. Empty if they do not. */
export function failedGates(
  compared: ComparedBatches,
  before: string,
  { failOnRegression, failOnCaseRegression }: RegressionGates,
): Printable[] {
  if (judgesNothing(compared)) return [nothingToJudge(compared, before)];
  return present([
    failOnRegression &&
      worseIn(compared).length > 0 &&
      regressionLine(compared, before, failOnCaseRegression === true),
    failOnCaseRegression && lostIn(compared).length > 0 && caseRegressionLine(compared, before),
  ]);
}

/** Whether a regression alone fails the command. */
export function hasGate({ failOnRegression, failOnCaseRegression }: RegressionGates): boolean {
  return failOnRegression === true || failOnCaseRegression === true;
}

function judgesNothing({ comparisons }: ComparedBatches): boolean {
  return comparisons.every(({ difference }) => difference.cases === 0);
}

/** What to say before a run whose gate can hardly fail, or not at all; undefined if it can. */
export function blindGateText(
  { name, blind }: Pick<OlderSide, 'name' | 'blind'>,
  { failOnRegression, failOnCaseRegression }: RegressionGates,
): Printable | undefined {
  if (!failOnRegression || blind.length === 0) return undefined;
  const besides = failOnCaseRegression ? '' : ', or add --fail-on-case-regression';
  const all = blind.filter(({ mustFall }) => mustFall === Number.POSITIVE_INFINITY);
  const most = blind.filter((one) => !all.includes(one));
  const never = text`--fail-on-regression cannot fail for ${all.map(({ variant }) => variant).join(', ')}: compared with ${name}, with these cases and trials not even a fall to 0 % would be more than noise; use more of them${besides}`;
  const rarely = most.map(
    ({ variant, mustFall, cases }) =>
      text`--fail-on-regression fails for ${variant} only if about ${mustFall} of ${plural(cases, 'case')} fall to 0 %: compared with ${name}, less is noise with these cases and trials; use more of them${besides}`,
  );
  return stack([...(all.length > 0 ? [never] : []), ...rarely]);
}

/** Why the gates fail a command, or do not, and what they cannot see. Empty if there is no gate. */
export function regressionLines(
  compared: ComparedBatches,
  older: Pick<OlderSide, 'name' | 'blind'>,
  gates: RegressionGates,
): Printable[] {
  if (!hasGate(gates)) return [];
  const { name: before, blind } = older;
  if (judgesNothing(compared)) return [nothingToJudge(compared, before)];
  const { failOnRegression, failOnCaseRegression } = gates;
  // Of a variant that can never be found worse, the line of the gate says so itself.
  const rarely = { name: before, blind: blind.filter(({ mustFall }) => Number.isFinite(mustFall)) };
  const unseen = worseIn(compared).length > 0 ? undefined : blindGateText(rarely, gates);
  return [
    ...(failOnRegression ? [regressionLine(compared, before, failOnCaseRegression === true)] : []),
    ...(failOnCaseRegression ? [caseRegressionLine(compared, before)] : []),
    ...(unseen ? [unseen] : []),
    ratesLine(compared, before),
    ...changedVariantLines(compared, before),
  ];
}

/** Why results are not compared at all, though that is wanted. */
export function notComparedLine(whyNot: string, gates: RegressionGates): Printable {
  return text`not compared: ${whyNot}${ours(hasGate(gates) ? ', so no regression can be judged' : '')}`;
}

/** The tables of a comparison are not in the summary of a step, nor in the log of a command with --json. */
function ratesLine({ comparisons }: ComparedBatches, before: string): Printable {
  // Two lone variants are compared whatever their names: the rate of another one is no trend of this one.
  const rates = comparisons.map(
    ({ a, b }) =>
      text`${b.variant} ${ours(percent(b.passRate?.rate))}, ${a.variant} in ${before} ${ours(percent(a.passRate?.rate))}`,
  );
  return text`pass rates: ${joined(rates, '; ')}`;
}

/** What else may explain a difference, or hide one. */
function changedVariantLines({ comparisons }: ComparedBatches, before: string): Printable[] {
  return comparisons.flatMap(({ b, variantChanges = [] }) =>
    variantChanges.length === 0
      ? []
      : [text`${b.variant} also has another ${variantChangesText(variantChanges)} than in ${before}`],
  );
}

function regressionLine(compared: ComparedBatches, before: string, hasCaseGate: boolean): Printable {
  const worse = worseIn(compared);
  if (worse.length > 0)
    return text`regression: ${worse.join(', ')} is worse than in ${before} by more than noise`;
  const blind = compared.comparisons.filter(({ difference }) => !difference.couldBeWorse);
  if (blind.length === 0)
    return text`no regression of a variant: compared with ${before}, no pass rate is worse by more than noise${hasCaseGate ? ours('') : notComparedText(compared)}`;
  return stack(blind.map((comparison) => cannotShow(comparison, before, hasCaseGate)));
}

/** Says what the comparison needs to show a regression. With too few cases, it never shows one. */
function cannotShow(comparison: Comparison, before: string, hasCaseGate: boolean): Printable {
  const { b, difference } = comparison;
  const { cases, confidence } = difference;
  if (cases === 0)
    return text`cannot show a regression of ${b.variant}: no case that asks and checks the same has a verdict both in ${before} and here`;
  const trials = Math.min(...trialsOfSides(comparison));
  const needs = [
    casesNeeded(cases, trials, confidence),
    ...(hasCaseGate ? [] : ['use --fail-on-case-regression as well']),
  ];
  return text`cannot show a regression of ${b.variant} with ${plural(cases, 'case')} and ${plural(trials, 'trial')} of each: compared with ${before}, not even a fall to 0 % would be more than noise; ${needs.join(', or ')}`;
}

function caseRegressionLine(compared: ComparedBatches, before: string): Printable {
  const lost = lostIn(compared);
  const leftOut = notComparedText(compared);
  if (lost.length === 0)
    return text`no case regression: no case that always passed in ${before} always fails now${leftOut}`;
  // Else it seems to contradict the finding, which is about pass rates.
  const though = worseIn(compared).length > 0 ? '' : ', though no pass rate is worse by more than noise';
  return text`case regression${ours(though)}: always passed in ${before}, and always fails now: ${firstNames(lost, named)}${leftOut}`;
}

/** The cases about which the gate says nothing, since they are not compared. */
function notComparedText(compared: ComparedBatches): Printable {
  const cases = redefinedIn(compared);
  const isOne = cases.length === 1;
  const redefined = text`; ${plural(cases.length, 'case')} not compared, since ${ours(isOne ? 'it asks or checks' : 'they ask or check')} something else now: ${firstNames(cases, named)}`;
  const alone = [...new Set(compared.comparisons.flatMap(({ onlyA, onlyB }) => [...onlyA, ...onlyB]))];
  const oneSided = text`; ${plural(alone.length, 'case')} not compared, with a verdict on one side only: ${firstNames(alone, named)}`;
  return text`${cases.length > 0 ? redefined : ours('')}${alone.length > 0 ? oneSided : ours('')}`;
}

function nothingToJudge(compared: ComparedBatches, before: string): Printable {
  const cases = redefinedIn(compared);
  const none = text`no case can be compared with ${before}, so no regression can be judged`;
  if (cases.length === 0) return text`${none}: none has a verdict both there and here`;
  const onlySource = cases.every((one) => one.endsWith(' (source)'));
  const cure = onlySource ? '; name a fixed `ref` of the source to compare jobs at other commits' : '';
  return text`${none}: ${plural(cases.length, 'case')} ${ours(cases.length === 1 ? 'asks or checks' : 'ask or check')} something else now: ${firstNames(cases, named)}${ours(cure)}`;
}

/** The cases that are not compared, with what differs in them. */
function redefinedIn({ comparisons }: ComparedBatches): string[] {
  const cases = new Map<string, Set<string>>();
  for (const { redefined = [], changedParts = {} } of comparisons)
    for (const id of redefined) {
      const parts = Object.hasOwn(changedParts, id) ? (changedParts[id] ?? []) : [];
      cases.set(id, new Set([...(cases.get(id) ?? []), ...parts]));
    }
  return [...cases].map(([id, parts]) => (parts.size === 0 ? id : `${id} (${[...parts].join(', ')})`));
}

function worseIn({ comparisons }: ComparedBatches): string[] {
  return comparisons
    .filter(({ difference }) => difference.finding === 'worse')
    .map(({ a, b }) => (a.variant === b.variant ? b.variant : `${b.variant} (there ${a.variant})`));
}

/** The cases of which all scored trials passed before, and none passes now. */
function lostIn({ comparisons }: ComparedBatches): string[] {
  return comparisons.flatMap(({ b: { variant }, changes }) =>
    changes
      .filter(({ a, b }) => a.scored > 0 && b.scored > 0 && a.passed === a.scored && b.passed === 0)
      .map((change) => `${change.case} · ${variant} (${change.b.scored} of ${change.b.scored} failed)`),
  );
}

/** Whether a case of a variant was compared, and did not get worse. */
export function isNoWorse(
  { comparisons }: ComparedBatches,
  run: Pick<RunSummary, 'case' | 'variant'>,
): boolean {
  const ofVariant = comparisons.find(({ b }) => b.variant === run.variant);
  if (!ofVariant || [...ofVariant.onlyB, ...(ofVariant.redefined ?? [])].includes(run.case)) return false;
  const change = ofVariant.changes.find((one) => one.case === run.case);
  return !change || change.b.passed / change.b.scored >= change.a.passed / change.a.scored;
}
