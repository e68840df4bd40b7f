import type { Judgment } from '../contract/validation.ts';
import type { TrialResult } from './trial-record.ts';

/** How many characters to show of what a program printed or a judge said. */
const toldCharacters = 200;

/** Matches a line that names an error, as most languages and test runners print it. */
const errorLine = /(\b|_)\w*(Error|Exception)\b.*\S|^\s*(error|fatal|panic|not ok|FAIL)\b/;

/** Why a trial failed: one line for each verify step, validation and judgment that failed. */
export function failuresOf({ verifySteps = [], validations = [], judgments = [] }: TrialResult): string[] {
  const steps = verifySteps
    .filter(({ exitCode }) => exitCode !== 0)
    .map(
      ({ command, exitCode, output }) => `verify: ${firstLine(command)} exited ${exitCode}${told(output)}`,
    );
  const failed = validations
    .filter(({ exitCode = 0 }) => exitCode !== 0)
    .map(({ name, message }) => `validation "${name}": ${firstLine(message ?? 'failed')}`);
  const judged = judgments
    .filter((judgment) => !reachesThreshold(judgment))
    .map(
      ({ name, score, threshold, reason }) =>
        `judgment "${name}": ${score ?? 'no score'} < ${threshold}${told(reason)}`,
    );
  return [...steps, ...failed, ...judged];
}

function firstLine(text: string): string {
  const [first = '', ...more] = text.trim().split('\n');
  return more.length > 0 ? `${first} …` : first;
}

/** The most telling line of a text: the first that names an error, else the last. */
function told(text = ''): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const line = (lines.find((each) => errorLine.test(each)) ?? lines.at(-1) ?? '').trim();
  if (line === '') return '';
  return `: ${line.length > toldCharacters ? `${line.slice(0, toldCharacters)}…` : line}`;
}

/** Whether a judgment passes. Without a threshold it always does. Without a score it never reaches one. */
export function reachesThreshold({ score, threshold }: Judgment): boolean {
  return threshold === undefined || (score !== undefined && score >= threshold);
}
