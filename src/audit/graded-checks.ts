import { isCommand } from '../engine/script/step-recorder.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Checks } from './checks.ts';

/** The exit code of a step whose end is not known. Others may stand for what never ran. */
const killed = 137;

/** With one of these, a script can leave its shell before its end. */
const leaving = /\b(exit|exec|eval|source)\b|(^|[\s;&|({])\.\s/m;

/** The checks of a record are all those that its definition asks for, and no others. */
export function checkGraded(record: TrialRecord, spec: TrialSpec | undefined, checks: Checks): void {
  if (spec?.verify !== undefined) checkSteps(record, spec.verify, checks);
  const { validations = [], judgments = [] } = record;
  for (const [index, { judgment }] of validations.entries()) {
    if (!judgment) continue;
    // Where a case has several steps, the name of the step stands before that of the judgment.
    const isOf = ({ name }: { name: string }) =>
      name === judgment.name || name.endsWith(`: ${judgment.name}`);
    const listed = judgments.filter(isOf).map((one) => ({ ...one, name: judgment.name }));
    const same = listed.find((one) => JSON.stringify(one) === JSON.stringify(judgment));
    const says = 'the judgment of a validation is among those of the trial';
    if (!same) checks.same(`validations[${index}].judgment`, says, listed[0], judgment);
  }
}

/** The steps are the commands of the script, one after the other, from its first line to its last. */
function checkSteps({ verifySteps = [], verdict }: TrialRecord, script: string, checks: Checks): void {
  if (script.includes('[redacted]')) {
    checks.missed('that each command of verify ran: a key was removed from it');
    return;
  }
  const says = 'each command of verify has its step';
  const lines = script.split('\n');
  let next = 0;
  const skip = () => {
    while (next < lines.length && !isCommand(lines[next] ?? '')) next += 1;
  };
  for (const [index, { command, exitCode }] of verifySteps.entries()) {
    skip();
    const end = next + command.split('\n').length;
    const expected = lines.slice(next, end).join('\n');
    if (expected !== command) {
      checks.contradicted(`verifySteps[${index}].command`, says, expected, command);
      return;
    }
    if (exitCode === killed) return;
    next = end;
  }
  skip();
  // A failed trial may have ended before its last check.
  if (next === lines.length || verdict !== 'passed') return;
  if (leaving.test(script)) checks.missed('that each command of verify ran: its script can end early');
  else checks.contradicted('verifySteps', says, lines[next], 'none');
}
