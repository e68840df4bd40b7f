import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { tarEntries } from '../archive/tar-entries.ts';
import { tarArchive } from '../archive/write-archive.ts';
import type { ConformanceCheck } from './check.ts';
import { failsAs, holds, NotChecked, same } from './testbed.ts';

/** An archive of one folder, with entries that an engine may get wrong. */
function archive(): Readable {
  return tarArchive([
    { name: 'made', isFolder: true, mode: 0o1750, uid: 1234, gid: 4321 },
    { name: 'made/file', mode: 0o6755, uid: 1234, gid: 4321, content: 'content' },
    { name: 'made/link', linkTarget: '/etc/shadow' },
    { name: `made/${'long '.repeat(30)}ü`, content: 'long' },
  ]);
}

/** What `find` prints about it: kind, mode, owner, link target, name. */
const look = "cd /made && find . -printf '%y %m %U:%G %l %f\\n' | sort";
const asMade = [
  'd 1750 1234:4321  .',
  `f 644 0:0  ${'long '.repeat(30)}ü`,
  'f 6755 1234:4321  file',
  'l 777 0:0 /etc/shadow link',
].sort();

/** Files that go into and out of containers, and how they are changed there. */
export const fileChecks: readonly ConformanceCheck[] = [
  {
    name: 'unpacks an archive with modes, owners, links and long names, before a start and after it',
    cost: 'Workspaces, protected files and validators arrive changed.',
    async run({ port: { containers }, create }) {
      await using container = await create({ capabilities: ['DAC_OVERRIDE', 'FOWNER'] });
      await containers.putArchive(container.id, '/', archive());
      await containers.start(container.id);
      same('what was unpacked before the start', linesOf((await container.shell(look)).stdout), asMade);
      await container.prepare('rm -r /made');
      await containers.putArchive(container.id, '/', archive());
      same('what was unpacked after it', linesOf((await container.shell(look)).stdout), asMade);
    },
  },
  {
    name: 'archives a folder with modes, owners and links, without following links',
    cost: 'The copy that is graded is not what the agent left.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await containers.putArchive(container.id, '/', archive());
      const read = await containers.getArchive(container.id, '/made', undefined, { owners: true });
      const seen: string[] = [];
      for await (const { header, content } of tarEntries(read)) {
        const { name, flag, mode, uid, gid, linkName } = header;
        const text = Buffer.concat([linkName, ...(await Array.fromAsync(content()))]);
        seen.push(`${String(name).replace(/\/$/, '')} ${flag} ${mode.toString(8)} ${uid}:${gid} ${text}`);
      }
      same(
        'what was archived',
        seen.sort(),
        [
          'made 5 1750 1234:4321 ',
          'made/file 0 6755 1234:4321 content',
          'made/link 2 777 0:0 /etc/shadow',
          `made/${'long '.repeat(30)}ü 0 644 0:0 long`,
        ].sort(),
      );
    },
  },
  {
    name: 'archives files with their times, and rounds none up',
    cost: 'In the copy that is graded, git reports unchanged files as changed.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare(
        'mkdir /opt/times && cd /opt/times && touch -d @1000000000.9 late && touch -d @1000000000.1 early',
      );
      const read = await containers.getArchive(container.id, '/opt/times', undefined, { owners: true });
      const seen: string[] = [];
      for await (const { header } of tarEntries(read)) {
        const { name, flag, modifiedAt } = header;
        if (flag === '0') seen.push(`${name} ${Math.floor(modifiedAt / 1000)}`);
      }
      same('the files and their times', seen.toSorted(), ['times/early 1000000000', 'times/late 1000000000']);
    },
  },
  {
    name: 'distinguishes a folder, another file and a missing path without reading them',
    cost: 'A missing workspace looks like an empty one.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare('ln -s /usr /opt/link');
      same('whether /usr is a folder', await containers.isFolder(container.id, '/usr'), true);
      same('whether a link to it is', await containers.isFolder(container.id, '/opt/link'), false);
      await failsAs('a look at nothing', 'not-found', containers.isFolder(container.id, '/no/such'));
      await failsAs('reading nothing', 'not-found', containers.getArchive(container.id, '/no/such'));
    },
  },
  {
    name: 'lists what a container added, changed and deleted',
    cost: 'Changes that an agent made outside its workspace are missed.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.shell('echo new > /opt/added; echo new >> /etc/profile; rm /etc/debian_version');
      const seen: string[] = [];
      for await (const { kind, path } of containers.changes(container.id)) seen.push(`${kind} ${path}`);
      same('the list', seen.sort(), [
        'added /opt/added',
        'deleted /etc/debian_version',
        'modified /etc',
        'modified /etc/profile',
        'modified /opt',
      ]);
    },
  },
  {
    name: 'reports when a container was created, by the clock of its files',
    cost: 'If the disk cannot be read, changes that an agent made are missed.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      await container.prepare('touch /opt/now');
      const changedAt = Number((await container.shell('stat -c %.3Z /opt/now')).stdout) * 1000;
      const { createdAt } = await containers.state(container.id);
      const after = changedAt - createdAt;
      holds(
        after > 0 && after < 60_000,
        `a file of now was changed ${after} ms after the container was made`,
      );
    },
  },
  {
    name: 'keeps what a container wrote in a separate folder',
    cost: 'Grading asks the engine what changed, which takes seconds for a large image.',
    async run({ port: { containers }, start }) {
      await using container = await start();
      const { layer } = await containers.state(container.id);
      if (layer === undefined) throw new NotChecked('it reports none; Offsite asks the engine instead');
      const canRead = await access(layer).then(
        () => true,
        () => false,
      );
      if (!canRead) throw new NotChecked('its disk is unreadable; Offsite asks the engine instead');
      await container.prepare('echo new > /opt/added');
      const isThere = await access(join(layer, 'opt/added')).then(
        () => true,
        () => false,
      );
      same('whether a new file is in it', isThere, true);
    },
  },
];

function linesOf(text: string): string[] {
  return text.trimEnd().split('\n').sort();
}
