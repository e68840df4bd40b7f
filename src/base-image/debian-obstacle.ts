/** The facts that decide whether this host can build the image from Debian's packages. */
export interface DebianSituation {
  platform: NodeJS.Platform;
  /** Effective user id; undefined on systems without user ids. */
  uid: number | undefined;
  hasMmdebstrap: boolean;
  hasAptGet: boolean;
  /** Whether Offsite may install Debian packages on the host. */
  mayInstall: boolean;
  /** Node's name for the host's architecture: `x64`. */
  hostArch: string;
  /** The kernel's name for the engine's architecture: `x86_64`. */
  engineArch: string;
}

/** The architectures that recipes have a Node for. */
const kernelNames: Record<string, string> = { x64: 'x86_64', arm64: 'aarch64' };

/** Why this host cannot build the image from Debian's packages, as a clause; undefined if it can. */
export function debianObstacle(situation: DebianSituation): string | undefined {
  const { platform, uid, hasMmdebstrap, hasAptGet, mayInstall, hostArch, engineArch } = situation;
  if (platform !== 'linux') return `that needs Linux, and this is ${platform}`;
  const kernelName = kernelNames[hostArch];
  if (kernelName === undefined) return `Offsite has no Node for ${hostArch}`;
  if (kernelName !== engineArch) return `the engine runs ${engineArch} and this host ${hostArch}`;
  if (uid !== 0) return 'that needs root';
  if (hasMmdebstrap) return undefined;
  if (!mayInstall) return 'mmdebstrap is missing and OFFSITE_NO_INSTALL forbids installing it';
  if (!hasAptGet) return 'mmdebstrap is missing and there is no apt-get to install it with';
  return undefined;
}
