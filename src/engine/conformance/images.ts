import { readArchive } from '../archive/read.ts';
import { createdLabel, instanceLabel, ownedLabel, parentLabel, roleLabel } from '../owned-objects.ts';
import type { ConformanceCheck } from './check.ts';
import { failsAs, holds, NotChecked, same, type Testbed } from './testbed.ts';

/**
 * A snapshot of a container that wrote a file. Removed when disposed of; a sweep finds it if this process
 * dies.
 */
async function committed({ port, start, imageId, labels, clock }: Testbed) {
  await using container = await start({ capabilities: ['CHOWN'] });
  await container.shell(
    'echo kept > /opt/kept; chmod 754 /opt/kept; chown 1234:4321 /opt/kept; rm /etc/debian_version',
  );
  const repository = 'offsite/check';
  const tag = `${labels[instanceLabel]}-${clock.now()}`;
  const id = await port.containers.commit(container.id, {
    repository,
    tag,
    labels: {
      [ownedLabel]: '1',
      [roleLabel]: 'snapshot',
      [instanceLabel]: '',
      [createdLabel]: String(clock.now()),
      [parentLabel]: imageId,
    },
  });
  return { id, name: `${repository}:${tag}`, [Symbol.asyncDispose]: () => port.remove('image', id) };
}

/** Images, of which snapshots are made. */
export const imageChecks: readonly ConformanceCheck[] = [
  {
    name: 'makes an image of a container with all that it wrote',
    cost: 'Trials start without the software and files that were prepared for them.',
    async run(testbed) {
      await using image = await committed(testbed);
      const found = await testbed.port.images.find(image.name);
      same('the image of that name', found?.id, image.id);
      same('its labels', found?.labels[parentLabel], testbed.imageId);
      await using container = await testbed.start({ imageId: image.id });
      const seen = await container.shell(
        'cat /opt/kept; stat -c "%a %u:%g" /opt/kept; ls /etc/debian_version 2> /dev/null',
      );
      same('what a container of it has', seen.stdout, 'kept\n754 1234:4321\n');
    },
  },
  {
    name: 'keeps an image while a container uses it, and removes it after that',
    cost: 'Snapshots disappear while trials start from them, or fill the disk.',
    async run(testbed) {
      const { port, create } = testbed;
      await using image = await committed(testbed);
      {
        await using _container = await create({ imageId: image.id });
        await failsAs('removing an image in use', 'conflict', port.remove('image', image.name));
      }
      await port.remove('image', image.name);
      same('the removed image', await port.images.find(image.name), undefined);
    },
  },
  {
    name: 'lists images with their names, labels and sizes',
    cost: 'Old snapshots are never removed, and fill the disk.',
    async run(testbed) {
      await using image = await committed(testbed);
      const listed = (await testbed.port.images.list()).find(({ id }) => id === image.id);
      same('its names', listed?.names, [image.name]);
      same('its label', listed?.labels[roleLabel], 'snapshot');
      holds((listed?.bytes ?? 0) > 0, `its size is ${listed?.bytes}`);
    },
  },
  {
    name: 'records when an image was last given its name',
    cost: 'Snapshots are removed by age, and not by when they were last used.',
    async run(testbed) {
      if (!testbed.facts.recordsNaming)
        throw new NotChecked('it does not; the oldest snapshots are removed first');
      const { images } = testbed.port;
      await using image = await committed(testbed);
      const before = (await images.find(image.name))?.namedAt ?? 0;
      await testbed.clock.sleep(20);
      await images.tag(image.id, image.name);
      const after = (await images.find(image.name))?.namedAt ?? 0;
      holds(after > before, 'the time of the name is the same after it was given again');
    },
  },
];

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
