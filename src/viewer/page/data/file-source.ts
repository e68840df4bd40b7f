import { cutMiddle, shownValue, valueAt } from '../../model/cut-record.ts';
import type { DataSource, RecordReference } from '../../model/data-source.ts';
import { type ExportedFile, idOfBlob, idOfFile, idOfTrial } from '../../model/exported-file.ts';
import { variantsOf } from '../../model/grid.ts';
import type { TrialPage } from '../../model/shapes.ts';

/** The data that the page itself holds: a batch that `offsite export` wrote. */
export function fileSource(): DataSource {
  let file: Promise<ExportedFile> | undefined;
  const whole = () => {
    file ??= json<ExportedFile>(idOfFile).then(present('This file has no data.'));
    return file;
  };
  const trial = async ({ trial, attempt }: RecordReference) =>
    present<TrialPage>('This trial is not in the file. It may have been left out for its size.')(
      await json(idOfTrial(trial, attempt)),
    );

  return {
    batches: async () => {
      const { batch, trials } = (await whole()).batch;
      return [{ ...batch, variants: variantsOf(trials) }];
    },
    batch: async (key) => {
      const { batch } = await whole();
      return present<typeof batch>('This batch is not in the file.')(
        batch.batch.key === key ? batch : undefined,
      );
    },
    summaries: async (_batch, trials) => {
      const wanted = new Set(trials);
      return (await whole()).summaries.filter(({ key }) => wanted.has(key));
    },
    trial,
    value: async (reference, pointer, limit) => {
      const { found } = await trial(reference);
      const text = shownValue(valueAt(found?.record, pointer) ?? '');
      const isCut = found?.cuts[pointer] !== undefined;
      const kept = isCut ? `${text}\n(The rest is not in this file: offsite export --with-outputs)` : text;
      return limit === undefined ? kept : cutMiddle(kept, limit);
    },
    blob: (sha256) => bytes(idOfBlob(sha256)),
  };
}

function present<Value>(message: string): (value: Value | undefined) => Value {
  return (value) => {
    if (value === undefined) throw new Error(message);
    return value;
  };
}

async function json<Value>(id: string): Promise<Value | undefined> {
  const content = await bytes(id);
  return content && (JSON.parse(await content.text()) as Value);
}

/** What an element holds; undefined if there is none. */
async function bytes(id: string): Promise<Blob | undefined> {
  const text = document.getElementById(id)?.textContent;
  if (text == null) return undefined;
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).blob();
}
