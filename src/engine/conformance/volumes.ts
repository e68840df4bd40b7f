import { readArchive } from '../archive/read.ts';
import { instanceLabel } from '../labels.ts';
import type { ConformanceCheck } from './check.ts';
import { failsAs, same } from './expect.ts';
import type { Testbed } from './testbed.ts';

async function newVolume({ port, labels, clock }: Testbed) {
  const volume = `offsite-check-${labels[instanceLabel]}-${clock.now()}`;
  await port.createVolume(volume, labels);
  return { volume, [Symbol.asyncDispose]: () => port.remove('volume', volume) };
}

/** Volumes, from which harnesses run. */
export const volumeChecks: readonly ConformanceCheck[] = [
  {
    name: 'shares a volume that containers can read and cannot change',
    cost: 'An agent can change the harness of other trials.',
    async run(testbed) {
      await using made = await newVolume(testbed);
      const { volume } = made;
      const path = '/offsite/check';
      {
        await using writer = await testbed.start({ mounts: [{ volume, path, readOnly: false }] });
        await writer.prepare(`echo shared > ${path}/file`);
        await failsAs('removing a volume in use', 'conflict', testbed.port.remove('volume', volume));
      }
      const mounts = [{ volume, path, readOnly: true }];
      await using reader = await testbed.start({ mounts, capabilities: ['DAC_OVERRIDE', 'CHOWN', 'FOWNER'] });
      const ran = await reader.shell(`echo changed > ${path}/file || rm ${path}/file || cat ${path}/file`);
      same('what a container has that tries to change it', ran.stdout, 'shared\n');
    },
  },
  {
    name: 'reads a volume in a container that does not run',
    cost: 'What Offsite keeps in volumes is not found, so each process adds the same files again.',
    async run(testbed) {
      await using made = await newVolume(testbed);
      const mounts = [{ volume: made.volume, path: '/offsite/check', readOnly: false }];
      {
        await using writer = await testbed.start({ mounts });
        await writer.shell('echo kept > /offsite/check/file; ln /offsite/check/file /offsite/check/link');
      }
      await using reader = await testbed.create({ mounts });
      const found: string[] = [];
      for await (const entry of readArchive({ port: testbed.port, id: reader.id }, '/offsite/check')) {
        found.push(`${entry.path} ${entry.type} ${entry.linkTarget ?? ''}`.trim());
      }
      same('what is read', found.sort().join(', '), 'file file, folder, link hardlink file');
    },
  },
];
