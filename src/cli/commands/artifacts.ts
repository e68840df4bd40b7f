import { Command } from '@commander-js/extra-typings';
import { OffsiteError } from '../../base/offsite-error.ts';
import { stack, text } from '../../text/printable.ts';
import { plural, size } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';
import { announcedTarget, trialOf } from '../show/open-trial.ts';
import { type Written, writeArtifacts } from '../write-artifacts.ts';

export function artifactsCommand() {
  return withConfigAndData(new Command('artifacts'))
    .description('list the files that a trial left as artifacts, or write them to a folder')
    .argument(
      '[trial...]',
      'the trial, as `offsite show` takes it: case/variant#ordinal (default: the only one of the last batch)',
    )
    .option('--out <folder>', 'write them below this folder, under their own names')
    .option('--force', 'replace files that exist')
    .option('--json', 'print one JSON document on stdout')
    .action(async (trial, options) => {
      await using context = CommandContext.open(options);
      const { out, err } = context;
      const ledger = context.ledger();
      const { details, record } = trialOf(ledger, announcedTarget(context, trial.join(' ')));
      const { artifacts } = details;
      const { artifactsOmitted = [], artifactsOmittedCount = artifactsOmitted.length } = record;
      if (artifactsOmittedCount > 0)
        err.print(`${plural(artifactsOmittedCount, 'further file')} exceeded the limits and were not kept`);
      if (options.out === undefined) {
        if (options.json) return out.json(artifacts);
        if (artifacts.length === 0) return out.print('the trial left no artifacts');
        const rows = artifacts.map(({ path, byteSize, sha256 }) => [path, size(byteSize), sha256]);
        return out.print(table(['artifact', { right: 'size' }, 'sha256'], rows));
      }
      const force = options.force === true;
      const read = (sha256: string) => ledger.blobs.read(sha256);
      const written = writeArtifacts(artifacts, options.out, { force, read });
      if (options.json) out.json(written);
      else if (written.length === 0) out.print('the trial left no artifacts');
      else out.print(stack(written.filter((one) => 'file' in one).map(({ file }) => text`${file}`)));
      refuse(written);
    });
}

/** Throws if artifacts were not written, and says why. */
function refuse(written: readonly Written[]): void {
  const refused = written.filter((one) => 'refused' in one);
  if (refused.length === 0) return;
  const reasons = refused.map(({ path, refused: why }) => `\n${path}: ${why}`).join('');
  const done = `${written.length - refused.length} of ${plural(written.length, 'artifact')} written`;
  throw new OffsiteError(`${done}; not written:${reasons}`, {
    code: 'ARTIFACTS_NOT_WRITTEN',
    kind: 'input',
    hint: '`offsite trial artifacts TRIAL --json` names the blob with each content.',
  });
}
