import { expect, test } from 'vitest';
import { trialDocument } from '../../../src/cli/commands/show.ts';
import { openTrial } from '../../../src/cli/show/open-trial.ts';
import { partsOf, storyOf } from '../../../src/cli/show/story.ts';
import type { FileChange } from '../../../src/record/files.ts';
import { plainText } from '../../../src/text/output.ts';
import { keptLedger } from './kept-ledger.ts';

test('many files that are slow to compare take little time, and others are compared still', async () => {
  using kept = keptLedger();
  const put = async (text: string) => (await kept.ledger.blobs.put(Buffer.from(text))).sha256;
  const version = (content: string) => ({ type: 'file' as const, mode: 0o644, byteSize: 20_000, content });
  const lines = (name: string, index: number) =>
    Array.from({ length: 15_000 }, (_, line) => `${name}${(line * index) % 7919}`).join('\n');
  const slow = Array.from({ length: 40 }, async (_, index): Promise<FileChange> => {
    const [before, after] = await Promise.all([put(lines('a', index + 1)), put(lines('b', index + 1))]);
    return { path: `slow${index}`, kind: 'modified', before: version(before), after: version(after) };
  });
  const [before, after] = await Promise.all([put('1\n'), put('2\n')]);
  const quick = { path: 'quick', kind: 'modified' as const, before: version(before), after: version(after) };
  const changes = (await Promise.all(slow)).toSpliced(2, 0, quick);
  await kept.add('batch_slow', { a: [{ verdict: 'failed', changes }] });
  const shown = openTrial(kept.ledger, 'a#0');
  for (const show of [
    () => plainText(storyOf(shown)),
    () => plainText(partsOf(shown, ['diff'])),
    () => JSON.stringify(trialDocument(shown, [], kept.ledger)),
  ]) {
    const printed = show();
    expect(printed).toMatch(/quick.*[+1]/);
    expect(printed).toContain('+2');
    expect(printed).toContain('too different to be compared in time');
  }
});
