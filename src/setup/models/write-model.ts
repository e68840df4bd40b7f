import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { inputError, messageOf } from '../../base/offsite-error.ts';
import { withModel } from '../../suite/add-model.ts';
import { ConfigFile } from '../../suite/config-file.ts';
import { readText, yamlFileOf } from '../../suite/yaml-file.ts';

/**
 * Puts a model into a configuration file, which need not exist. The file is replaced in one step, so that no
 * reader sees half of it. Throws an `input` error if the file cannot be written.
 */
export async function writeModel(file: string, name: string, model: object): Promise<void> {
  const exists = existsSync(file);
  // The name may be a link to the file.
  const path = exists ? realpathSync(file) : file;
  const before = exists ? readText(path) : '';
  const after = withModel(before, name, model);
  yamlFileOf(after, { file, schema: ConfigFile });
  const partial = join(dirname(path), `.${basename(path)}.${randomUUID()}.partial`);
  try {
    await using handle = await open(partial, 'wx', exists ? statSync(path).mode & 0o777 : 0o666);
    await handle.writeFile(after);
    await handle.sync();
    if (exists && readFileSync(path, 'utf8') !== before) throw new Error('it was changed meanwhile');
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw inputError('CONFIG_NOT_WRITTEN', `cannot write ${file}: ${messageOf(error)}`, {
      hint: 'Nothing was changed. Check that you may write to its folder, then try again.',
      cause: error,
    });
  }
}
