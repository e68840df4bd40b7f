import { once } from 'node:events';
import { readArchive } from '../archive/read.ts';
import { createdLabel, instanceLabel, ownedLabel, parentLabel, roleLabel } from '../owned-objects.ts';
import { type ConformanceCheck, failsAs, holds, NotChecked, same, type Testbed } from './testbed.ts';

/** Making, ending, listing and attaching to containers. */
export const containerChecks: readonly ConformanceCheck[] = [
  {
    name: 'names its machine as the kernel does',
    cost: 'The filter of system calls and the programs that Offsite brings are chosen by that name.',
    async run({ facts, start }) {
      await using container = await start();
      same('the name', facts.arch, (await container.shell('uname -m')).stdout.trim());
    },
  },
  {
    name: 'starts a killed container again with its files and without its processes',
    cost: 'What an agent left running can change its work while it is graded.',
    async run(testbed) {
      await using container = await testbed.start();
      const { containers } = testbed.port;
      await container.shell('echo kept > /opt/kept; sleep 600 > /dev/null 2>&1 &');
      await containers.kill(container.id);
      same('whether it runs after it was killed', (await containers.state(container.id)).isRunning, false);
      await containers.start(container.id);
      same('its file', (await container.shell('cat /opt/kept')).stdout, 'kept\n');
      // The container's first process is a `sleep` too.
      const count = 'cat /proc/[0-9]*/comm | grep -c sleep';
      same('the count of processes that sleep', (await container.shell(count)).stdout, '1\n');
    },
  },
  {
    name: 'reports a missing object and a conflict as different failures',
    cost: 'Snapshots are built twice at the same time, and cleanup fails.',
    async run({ port, create, labels, clock }) {
      await failsAs(
        'a look at a container that never was',
        'not-found',
        port.containers.state('offsite-no-such'),
      );
      same('an image that never was', await port.images.find('offsite/no-such:image'), undefined);
      const name = `offsite-check-${labels['offsite.instance']}-${clock.now()}`;
      await using container = await create({ name });
      await failsAs('a second container of the same name', 'conflict', create({ name }));
      await port.remove('container', container.id);
      await port.remove('container', container.id);
    },
  },
  {
    name: 'refuses a runtime that it does not have',
    cost: 'A sandbox that asks for gVisor runs without it.',
    async run({ create }) {
      const creating = async () => {
        await using _ = await create({ runtime: 'offsite-no-such' });
      };
      await failsAs('a container with a runtime that is not there', 'refused', creating());
    },
  },
  {
    name: 'finds containers by their labels, and reports their names and states',
    cost: 'What dead agents left is never removed, or living ones lose their containers.',
    async run({ port, create, labels, clock }) {
      const mark = `offsite-check=${labels['offsite.instance']}-${clock.now()}`;
      const [key = '', value = ''] = mark.split('=');
      const name = `offsite-check-${value}`;
      await using container = await create({ name, labels: { ...labels, [key]: value } });
      const { id } = container;
      const listed = async () =>
        (await port.list('container', [mark])).map((found) => [found.id, found.name, found.state]);
      same('the list', await listed(), [[id, name, 'created']]);
      await port.containers.start(id);
      same('the list', await listed(), [[id, name, 'running']]);
      same('a list by two labels', await port.list('container', [mark, 'offsite-check=other']), []);
    },
  },
  {
    name: 'ends a program once nobody holds its input',
    cost: 'Agents that were killed look alive forever, and their containers stay.',
    async run({ port: { containers }, create, clock }) {
      await using container = await create({ command: ['/bin/cat'], stdin: true, readOnlyRoot: true });
      const stream = await containers.attach(container.id, { onStderr: () => undefined });
      try {
        await containers.start(container.id);
        stream.write('hello');
        const [echo] = await once(stream, 'data', { signal: AbortSignal.timeout(30_000) });
        same('what the program says', String(echo), 'hello');
      } finally {
        stream.destroy();
      }
      const end = clock.now() + 10_000;
      const isRunning = async () => (await containers.state(container.id)).isRunning;
      while ((await isRunning()) && clock.now() < end) await clock.sleep(50);
      same('whether it still runs', await isRunning(), false);
    },
  },
  {
    name: 'lists the processes of a container',
    cost: 'Processes are listed from inside, where an agent may have replaced the programs that do it.',
    async run({ port: { containers }, clock, isPlain, start }) {
      await using container = await start();
      const { initPid } = await containers.state(container.id);
      holds(initPid > 0, `the id of the first process is ${initPid}`);
      let processes = await containers.processes(container.id, 'args');
      if (!isPlain && !processes?.some(({ pid }) => pid === initPid))
        throw new NotChecked('its list is of other processes; Offsite ends them by restarting the sandbox');
      // The first process may still be about to become the program: a start does not wait for that.
      for (let look = 0; look < 50 && processes?.[0]?.command !== '/bin/sleep infinity'; look++) {
        await clock.sleep(100);
        processes = await containers.processes(container.id, 'args');
      }
      holds(processes !== undefined, 'it has no list of processes (is ps missing on its machine?)');
      same(
        'the first process',
        processes?.map(({ pid, command }) => [pid, command]),
        [[initPid, '/bin/sleep infinity']],
      );
    },
  },
  {
    name: 'reports what happened in a container',
    cost: 'A command that was killed for lack of memory looks like one that failed by itself.',
    async run({ port: { containers }, start }) {
      if (containers.events === undefined)
        throw new NotChecked('it reports none; Offsite reads the counters of the kernel');
      await using container = await start();
      const opened = await containers.exec(container.id, { argv: ['/bin/true'], onPiece: () => undefined });
      holds(opened.started, 'it cannot start /bin/true');
      if (!opened.started) return;
      using exec = opened.exec;
      const signal = AbortSignal.timeout(10_000);
      for await (const event of containers.events(container.id, signal)) {
        if (event.kind === 'exec-started' && event.execId === exec.id) return;
      }
      holds(false, 'the start of a command was not reported in 10 s');
    },
  },
];

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
      if (testbed.facts.product === 'Podman' || testbed.facts.imageStore === 'containerd')
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
