import { printedText } from '../bounds/anyone.ts';
import type { Validation } from '../contract/validation.ts';
import type { TrialResult } from './trial-record.ts';

/**
 * The last lines of what the failed verify steps and validations of a trial printed, and what made it void.
 * Empty for none.
 */
export function failedOutputOf({ verifySteps = [], validations = [], cause }: TrialResult): string {
  const steps = verifySteps.filter(({ exitCode }) => exitCode !== 0).map(({ output }) => output);
  const failed = validations.filter(({ exitCode = 0 }) => exitCode !== 0).map(printedBy);
  return [...steps, ...failed, cause?.output ?? ''].map(lastLines).filter(Boolean).join('\n\n');
}

function printedBy({ message = '', kind, output, error, logs = [] }: Validation): string {
  const printed = kind === 'tests' ? logs.map(({ value }) => value?.text ?? '') : [];
  return [message.includes('\n') ? message : '', ...printed, output?.text ?? '', error?.text ?? '']
    .filter((text) => text.trim() !== '')
    .join('\n');
}

function lastLines(text: string): string {
  const lines = text.trimEnd().split('\n');
  return lines
    .slice(-printedText.count.lastLines)
    .join('\n')
    .slice(-printedText.bytes.logLine)
    .toWellFormed();
}
