import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, OffsiteError, systemHint } from '../base/offsite-error.ts';

/** Takes the parts of an export one after the other. */
export type Write = (part: string | Uint8Array) => Promise<void>;

/**
 * Writes a file part by part. The file appears under its name only when it is complete, and replaces an
 * existing file. If `produce` rejects, nothing is left. Throws the input error `FILE_NOT_WRITTEN`.
 */
export async function writeExport(file: string, produce: (write: Write) => Promise<void>): Promise<void> {
  const partial = join(dirname(file), `.offsite-${randomBytes(6).toString('hex')}.partial`);
  const failed = (error: unknown) =>
    new OffsiteError(`cannot write ${file}: ${messageOf(error)}`, {
      code: 'FILE_NOT_WRITTEN',
      kind: 'input',
      hint: `Nothing was changed. ${systemHint(error, 'Check that the folder exists.')}`,
      cause: error,
    });
  const handle = await open(partial, 'wx').catch((error: unknown) => {
    throw failed(error);
  });
  try {
    await produce(async (part) => {
      await handle.writeFile(part).catch((error: unknown) => {
        throw failed(error);
      });
    });
    await handle.close();
    await rename(partial, file).catch((error: unknown) => {
      throw failed(error);
    });
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw error;
  }
}
