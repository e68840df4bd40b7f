import { cutMiddle, shownValue, valueAt } from '../../model/cut-record.ts';
import type { DataSource, RecordReference } from '../../model/data-source.ts';
import {
  batchIn,
  dataType,
  type ExportedFile,
  idOfBlob,
  idOfFile,
  idOfTrial,
} from '../../model/exported-file.ts';
import { variantsOf } from '../../model/grid.ts';
import type { BatchPage, TrialPage } from '../../model/shapes.ts';

/** A page that `offsite export` wrote: this one, or one that a person added to compare it. */
interface ReadFile {
  batch: BatchPage;
  /** What an element with data holds; undefined if there is none with the id. */
  textOf: TextOf;
  /** Two files can have the same keys, so those of the second one are higher here by this. */
  above: number;
}

type TextOf = (id: string) => string | null | undefined;

/** More than any ledger has keys. */
const keysOfFile = 2 ** 40;

/** The data that the page itself holds, a batch that `offsite export` wrote, with those of added files. */
export function fileSource(): DataSource {
  const added: ReadFile[] = [];
  let first: Promise<ReadFile> | undefined;
  const own = () => {
    first ??= read((id) => document.getElementById(id)?.textContent, 0)
      .then((file) => (file === 'newer' ? undefined : file))
      .then(present('This file has no data.'));
    return first;
  };
  const all = async () => [await own(), ...added];
  const elsewhere = (what: string) =>
    `This ${what} is not in the file. If it was in a second file, add that file again.`;
  const fileOf = async (key: number) => {
    return present<ReadFile>(elsewhere('batch'))((await all()).find(({ batch }) => batch.batch.key === key));
  };
  const trial = async ({ trial: key, attempt }: RecordReference) => {
    const file = present<ReadFile>(elsewhere('trial'))((await all())[Math.floor(key / keysOfFile)]);
    const found = await json<TrialPage>(file.textOf, idOfTrial(key - file.above, attempt));
    const page = present<TrialPage>('This trial is not in the file. It may have been left out for its size.')(
      found,
    );
    const raise = raisedBy(file.above);
    return { ...page, batch: raise(page.batch), trial: raise(page.trial) };
  };

  return {
    batches: async () =>
      (await all()).map(({ batch: { batch, trials } }) => ({
        ...batch,
        shortId: batch.id.replace(/^batch_/, '').slice(0, 8),
        isWhole: true,
        variants: variantsOf(trials),
      })),
    batch: async (key) => (await fileOf(key)).batch,
    trial,
    value: async (reference, pointer, limit) => {
      const { found } = await trial(reference);
      const text = shownValue(valueAt(found?.record, pointer) ?? '');
      const isCut = found?.cuts[pointer] !== undefined;
      const kept = isCut ? `${text}\n(The rest is not in this file: offsite export --with-outputs)` : text;
      return limit === undefined ? kept : cutMiddle(kept, limit);
    },
    blob: async (sha256) => {
      for (const { textOf } of await all()) {
        const content = await bytes(textOf, idOfBlob(sha256));
        if (content) return content;
      }
      throw new Error('Its content is not in this file.');
    },
    add: async (file) => {
      // Nothing of the file but its data is looked at.
      const texts = new Map<string, string>();
      for (const [, id = '', text = ''] of (await file.text()).matchAll(dataElement)) texts.set(id, text);
      const second = await read((id) => texts.get(id), (added.length + 1) * keysOfFile).catch(
        () => undefined,
      );
      if (second === 'newer')
        throw new Error(`A newer Offsite wrote ${file.name}: open that page, and add this one to it.`);
      if (!second) throw new Error(`${file.name} is no page that offsite export --html wrote.`);
      added.push(second);
      return { one: (await own()).batch.batch.key, other: second.batch.batch.key };
    },
  };
}

/** An element with data, as text. */
const dataElement = new RegExp(`<script type="${dataType}" id="([\\w-]+)">([\\w+/=]*)</script>`, 'g');

function raisedBy(above: number) {
  return <Value extends { key: number }>(value: Value): Value => ({ ...value, key: value.key + above });
}

function present<Value>(message: string): (value: Value | undefined) => Value {
  return (value) => {
    if (value === undefined) throw new Error(message);
    return value;
  };
}

/** Undefined if a page has no data, and `newer` if this page cannot read them. */
async function read(textOf: TextOf, above: number): Promise<ReadFile | 'newer' | undefined> {
  const file = await json<ExportedFile>(textOf, idOfFile);
  if (!file) return undefined;
  const raise = raisedBy(above);
  const found = batchIn(file);
  if (found === 'newer') return found;
  const { batch, trials } = found;
  return {
    textOf,
    above,
    batch: { ...found, batch: raise(batch), trials: trials.map(raise) },
  };
}

async function json<Value>(textOf: TextOf, id: string): Promise<Value | undefined> {
  const content = await bytes(textOf, id);
  return content && (JSON.parse(await content.text()) as Value);
}

async function bytes(textOf: TextOf, id: string): Promise<Blob | undefined> {
  const text = textOf(id);
  if (text == null) return undefined;
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).blob();
}
