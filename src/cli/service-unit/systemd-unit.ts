import { join } from 'node:path';
import { mark, type ServiceSpec, type ServiceUnit } from './service-unit.ts';

const name = 'offsite.service';

/**
 * What keeps the daemon from all that it does not need, which is next to everything: sandboxes are the
 * engine's, so it needs the engine's socket, the network and its data folder. These hold for a user's
 * services as well; W^X is not among them, since V8 compiles as it runs.
 */
const hardening = [
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RestrictNamespaces=yes',
  // AF_NETLINK: the resolver asks the kernel which addresses there are.
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'SystemCallArchitectures=native',
  'UMask=0077',
];

/**
 * Only the system's own manager can do these. A read-only file system does not keep anybody from connecting
 * to a socket in it.
 */
const systemHardening = [
  'ProtectSystem=strict',
  'ProtectHome=read-only',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
];

/** The unit of the daemon. `folder` is where the manager of that scope looks for units. */
export function systemdUnit(spec: ServiceSpec, folder: string): ServiceUnit {
  const isSystem = spec.scope === 'system';
  const target = isSystem ? 'multi-user.target' : 'default.target';
  const systemctl = isSystem ? 'systemctl' : 'systemctl --user';
  const [program = '', ...args] = spec.command;
  const service = [
    'Type=notify',
    // Node cannot write to systemd's socket itself; the helper that does so is another process.
    'NotifyAccess=all',
    // The daemon gives a sign of life every few seconds while every loop goes round; one that is late gets a
    // minute.
    'WatchdogSec=180',
    'TimeoutStartSec=300',
    `ExecStart=${[quoted(program), ...args.map(quoted)].join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    `EnvironmentFile=-${specifier(spec.environmentFile)}`,
    ...(isSystem && spec.runAs !== undefined ? [`User=${spec.runAs}`] : []),
    'Restart=on-failure',
    'RestartSec=10',
    '# 2 is a mistake in the configuration, which no new start mends; 130 and 143 are a daemon that was told thrice to end.',
    'RestartPreventExitStatus=2',
    'SuccessExitStatus=130 143',
    '# Stopping drains: trials that run come to their end. Those that take longer start afresh with the next daemon.',
    'KillMode=mixed',
    'TimeoutStopSec=900',
    '',
    ...hardening,
    ...(isSystem ? [...systemHardening, capabilities(spec), ...writable(spec.dataFolder)] : []),
  ];
  const lines = [
    `# ${mark} A file without this line is left alone by it.`,
    '[Unit]',
    'Description=Offsite: runs queued evaluation trials in local sandboxes',
    'After=network-online.target docker.service',
    'Wants=network-online.target',
    // An engine that is away for an hour is not a reason to give up.
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    ...service,
    '',
    '[Install]',
    `WantedBy=${target}`,
  ];
  return {
    name,
    file: join(folder, name),
    text: `${lines.join('\n')}\n`,
    enabledBy: join(folder, `${target}.wants`, name),
    start: [`${systemctl} daemon-reload`, `${systemctl} enable --now ${name}`, `${systemctl} status ${name}`],
    stop: [`${systemctl} disable --now ${name}`],
    forget: [`${systemctl} daemon-reload`],
  };
}

/** Of its might root keeps that of reading: program and configuration may lie in somebody's home. */
function capabilities({ runAs }: ServiceSpec): string {
  return `CapabilityBoundingSet=${runAs === undefined ? 'CAP_DAC_READ_SEARCH' : ''}`;
}

/** Below /var/lib systemd makes the folder, for the user that the daemon runs as. */
function writable(dataFolder: string): string[] {
  const [, below] = /^\/var\/lib\/([\w.-]+)$/.exec(dataFolder) ?? [];
  return below === undefined
    ? [`ReadWritePaths=${quoted(dataFolder)}`]
    : [`StateDirectory=${below}`, 'StateDirectoryMode=0700'];
}

/** A word of a unit's command line: `%` and `$` stand for themselves. */
function quoted(word: string): string {
  const literal = specifier(word).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('$', '$$$$');
  return /[^\w@%+=:,./$-]/.test(word) || word === '' ? `"${literal}"` : literal;
}

function specifier(text: string): string {
  return text.replaceAll('%', '%%');
}
