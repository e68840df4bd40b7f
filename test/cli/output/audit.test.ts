import { expect, test } from 'vitest';
import { printedText } from '../../../src/bounds/anyone.ts';
import { auditText } from '../../../src/cli/commands/audit.ts';
import type { StoredTrial } from '../../../src/ledger/trial-rows.ts';
import type { AuditedLevel } from '../../../src/record/audit.ts';
import { Output } from '../../../src/text/output.ts';

const esc = '\u001b';
const level: AuditedLevel = {
  level: 'consistent',
  state: 'contradicted',
  unchecked: [`${esc}]0;theirs`],
  contradictions: [{ path: `${esc}[2J`, says: 'it is', expected: `${esc}[1m`, found: '\u202eb' }],
};
const trialOf = (ordinal: number) =>
  ({ run: 1, runId: 'r', caseId: `${esc}[31ma`, variant: 'b', ordinal, verdict: 'passed' }) as StoredTrial;

function linesOf(trials: number): string[] {
  let text = '';
  const out = new Output({ write: (characters) => (text += characters) });
  const shown = Array.from({ length: trials }, (_, ordinal) => ({
    trial: trialOf(ordinal),
    audit: { at: 0, levels: [level] },
  }));
  const whole = { state: 'held' as const, contradictions: [], unchecked: [] };
  const [signature, batchId] = [`NOT SIGNED${esc}[2J`, 'batch_1'];
  out.print(auditText({ batchId, level: 'consistent', signature, whole, trials: shown }));
  expect(text).not.toContain(esc);
  expect(text).not.toContain('\u202e');
  return text.split('\n');
}

test('an audit says first who signed it, then what is contradicted, and prints no control characters', () => {
  const lines = linesOf(1);
  expect(lines[0]).toMatch(/^NOT SIGNED/);
  const [contradiction, row] = ['#0: ', ' passed '].map((part) =>
    lines.findIndex((one) => one.includes(part)),
  );
  expect(contradiction).toBe(2);
  expect(row).toBeGreaterThan(2);
  expect(lines.join('\n')).toContain('contradicted: 1 place');
});

test('of very many contradictions the first ones are printed, and how many there are', () => {
  const lines = linesOf(5_000);
  expect(lines.filter((one) => one.includes('it is; expected'))).toHaveLength(printedText.count.lines);
  expect(lines).toContain(`and ${5_000 - printedText.count.lines} more: --json lists all`);
});

function endOf(levels: Partial<AuditedLevel>[], signature?: string): string {
  let text = '';
  const out = new Output({ write: (characters) => (text += characters) });
  const shown = levels.map((given, ordinal) => {
    const plain = {
      level: 'regraded' as const,
      contradictions: [],
      unchecked: [],
      state: 'not reached' as const,
    };
    return { trial: trialOf(ordinal), audit: { at: 0, levels: [{ ...plain, ...given }] } };
  });
  const whole = { state: 'held' as const, contradictions: [], unchecked: [] };
  out.print(auditText({ batchId: 'b', level: 'regraded', signature, whole, trials: shown }));
  return text.trim().split('\n').at(-1) ?? '';
}

test('where no trial reached the level, the end says on whose side the reason is', () => {
  expect(endOf([{ lacks: 'evidence' }], 'NOT SIGNED')).toMatch(/; its owner can run the suite again with/);
  expect(endOf([{ lacks: 'evidence' }])).toBe(
    'no trial reached regraded: the evidence lacks what that needs; set what is named above, and run the suite again',
  );
  expect(endOf([{ lacks: 'machine' }, { lacks: 'machine' }])).toMatch(/: this machine lacks what that needs/);
  expect(endOf([{ lacks: 'machine' }, { lacks: 'evidence' }])).toMatch(/: 1 for a reason of this machine/);
  expect(endOf([])).toBe('no trial reached regraded: none has a result');
  expect(endOf([{ state: 'held' }, { lacks: 'evidence' }])).toBe('further: --level replayed');
});
